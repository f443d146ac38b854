import { describeKills } from './kill.ts';

describeKills('even writes', (index) => index % 2 === 0);
