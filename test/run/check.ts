/** `npm run check`: format, lint, types and the rules of the house. */

import { runChecks } from './check-steps.ts'
import { runNodeSuite } from './node-suite.ts'
import { conclude } from './suite.ts'

conclude([await runChecks('check'), await runNodeSuite('house', ['test/house.test.ts'])])
