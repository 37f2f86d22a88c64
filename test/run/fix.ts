/** `npm run fix`: let the formatters and linters mend what they can. */

import { writeConfigurationPage } from '../house/configuration-page.ts'
import { runChecks } from './check-steps.ts'
import { conclude } from './suite.ts'

writeConfigurationPage()
conclude([await runChecks('fix')])
