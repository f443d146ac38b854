import { describeKills } from './kill.ts';

describeKills('odd writes', (index) => index % 2 === 1);
