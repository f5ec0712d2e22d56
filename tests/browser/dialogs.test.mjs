// Dialogs (dialogs.mjs) on light screens.
import { dialogs } from './dialogs.mjs';
import { VIEWS } from './kit.mjs';

dialogs(VIEWS.filter((v) => v.colorScheme === 'light'));
