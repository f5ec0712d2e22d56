// Dialogs (dialogs.mjs) on dark screens.
import { dialogs } from './dialogs.mjs';
import { VIEWS } from './kit.mjs';

dialogs([...VIEWS.filter((v) => v.colorScheme === 'dark'), { viewport: { width: 1024, height: 900 }, colorScheme: 'dark' }]);
