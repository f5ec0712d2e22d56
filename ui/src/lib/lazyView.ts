// lazyView - a view that is loaded when it is opened. If the server cannot be
// reached at that moment, Unreachable takes its place.

import { defineAsyncComponent, type Component } from 'vue';
import Unreachable from '../components/shell/Unreachable.vue';

export const lazyView = (loader: () => Promise<{ default: Component }>) =>
  defineAsyncComponent({ loader, errorComponent: Unreachable });
