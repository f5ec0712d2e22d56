import { createPinia } from 'pinia';
import { createApp } from 'vue';

import App from './App.vue';
import { keepPageOnDrop } from './composables/useFileDrop';
import './style.css';

keepPageOnDrop();
createApp(App).use(createPinia()).mount('#app');
