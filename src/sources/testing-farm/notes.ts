/** Lists what did not pass in files of results, whatever their root, namespaces and missing names. */
export const LIST_FAILURES = `import sys, xml.etree.ElementTree as ET
name = lambda e: e.tag.rsplit('}', 1)[-1]
def show(what, e):
    print(what, e.get('name', '(no name)'), e.get('result', ''))
    for log in (e for e in e.iter() if name(e) == 'log'):
        print('   ', log.get('name', ''), log.get('href', ''))
for path in sys.argv[1:]:
    root = ET.parse(path).getroot()
    print('==', path, root.get('overall-result', root.get('result', '')))
    for e in root.iter():
        inside = {name(child) for child in e}
        bad = e.get('result', 'passed') not in ('passed', 'skipped', 'info', 'not_applicable')
        if name(e) == 'testcase' and (bad or inside & {'failure', 'error'}):
            show('FAILED', e)
        if name(e) == 'testsuite' and bad and not inside & {'testcase', 'testsuite'}:
            show('NO TESTS', e)`;

/** What the model cannot know of Testing Farm from the tools' schemas. */
export const NOTES = `Testing Farm runs the tests of a request, whose id is a UUID. It stands in the \`target_url\` of a commit status, in the results and the log of the TaskRun that started the tests, and in every link to an artifact. For people the page of a request is \`{artifacts_base}/{request_id}/\`: link it.
The XML of \`tf_get_results\`: \`testsuites/@overall-result\`; \`testsuite\` is one plan, with \`@result\` and \`logs/log\` of what came before its tests (guest setup, installation); \`testcase\` has \`@name\`, \`@result\` (passed, failed, error, skipped; undefined or pending while it runs) and \`logs/log\` with \`@name\` and \`@href\`. A test's own output is the log \`testout.log\`; an href without a file name (\`log_dir\`, \`workdir\`) is a folder of more. This lists what did not pass:

\`\`\`sh
python3 - FILE… <<'EOF'
${LIST_FAILURES}
EOF
\`\`\`

Give an \`@href\` to \`tf_get_test_log\` as it stands. Read one or two logs for each kind of failure, not all of them.
A request in the state \`error\` is no failed test: provisioning or installation failed, and \`tf_get_request_status\` says how.`;
