// usePreview - the file of the workspace that is shown in a dialog.

import { ref } from 'vue';

const path = ref(''); // '': none

export const usePreview = () => ({
  path,
  show: (p: string) => {
    path.value = p;
  },
  close: () => {
    path.value = '';
  },
});
