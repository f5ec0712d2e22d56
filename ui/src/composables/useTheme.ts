// useTheme - light, dark or system; stored in this browser.

import { computed, ref, watchEffect } from 'vue';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'mo.theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

function stored(): Theme {
  const v = localStorage.getItem(KEY);
  return v === 'light' || v === 'dark' ? v : 'system';
}

const theme = ref<Theme>(stored());
const systemDark = ref(dark.matches);

const isDark = computed(() =>
  theme.value === 'dark' || (theme.value === 'system' && systemDark.value));

dark.addEventListener('change', () => {
  systemDark.value = dark.matches;
});

watchEffect(() => {
  document.documentElement.dataset['theme'] = isDark.value ? 'dark' : 'light';
  document.querySelector('meta[name=theme-color]')?.setAttribute('content', isDark.value ? '#141412' : '#fbfbfa');
  if (theme.value === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme.value);
});

export function useTheme() {
  return theme;
}

export function useIsDark() {
  return isDark;
}
