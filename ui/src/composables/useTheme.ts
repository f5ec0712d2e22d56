// useTheme - light, dark or system; stored in this browser.

import { ref, watchEffect } from 'vue';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'mo.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

function stored(): Theme {
  const v = localStorage.getItem(KEY);
  return v === 'light' || v === 'dark' ? v : 'system';
}

const theme = ref<Theme>(stored());
const systemDark = ref(dark.matches);

dark.addEventListener('change', () => {
  systemDark.value = dark.matches;
});

watchEffect(() => {
  const isDark =
    theme.value === 'dark' || (theme.value === 'system' && systemDark.value);
  document.documentElement.dataset['theme'] = isDark ? 'dark' : 'light';
  if (theme.value === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme.value);
});

export function useTheme() {
  return theme;
}
