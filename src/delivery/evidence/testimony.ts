/**
 * What people upstream wrote: read for prose only. It never comes near an edit, since a version in a commit message
 * would otherwise be one that the evidence has.
 */
export interface Testimony {
  /** Release notes, the newest first. */
  readonly notes?: string;
  /** Commits that mention what the report names, or what the search for them came to. */
  readonly commits?: string;
  /** Why there is none, in one sentence. */
  readonly silence?: string;
}
