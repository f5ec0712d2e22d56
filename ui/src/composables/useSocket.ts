// useSocket - a Socket.IO connection with checked events.
//
// An event that fails its check (protocol.ts) is reported and dropped.

import { onScopeDispose, shallowRef, type ShallowRef } from 'vue';
import { io, type Socket } from 'socket.io-client';

import { WireError } from '../lib/check';
import {
  EVENTS, readAck, type Ack, type EventName, type First, type Requests,
  type Second,
} from '../protocol';
import { t } from '../lang';

export type LinkState = 'connecting' | 'open' | 'lost' | 'refused';

export type Handlers = {
  [E in EventName]: (first: First<E>, second: Second<E>) => void;
};

export interface SocketOptions {
  sessionId: string;
  model: string;
  read: boolean; // follow it, do not open it
  handlers: Handlers;
  raw: (name: string, args: unknown[]) => void; // every event, unchecked
  broken: (why: string) => void;
}

export interface Link {
  state: ShallowRef<LinkState>;
  send<R extends keyof Requests>(name: R, value?: Requests[R]): Promise<Ack>;
  retry(): void;
  close(): void;
}

const ACK_MS = 30_000;

type Untyped = (first: unknown, second: unknown) => void;

function listen(socket: Socket, o: SocketOptions): void {
  for (const name of Object.keys(EVENTS) as EventName[]) {
    const [first, second] = EVENTS[name];
    const handle = o.handlers[name] as Untyped;
    socket.on(name as string, (a: unknown, b: unknown) => {
      try {
        handle(first(a, name), second(b, name));
      } catch (e) {
        if (!(e instanceof WireError)) throw e;
        o.broken(e.message);
      }
    });
  }
  socket.onAny((name: string, ...args: unknown[]) => o.raw(name, args));
}

function follow(socket: Socket, state: ShallowRef<LinkState>): void {
  socket.on('connect', () => {
    state.value = 'open';
  });
  socket.on('disconnect', (reason) => {
    // The server closed on purpose, so we do not reconnect.
    state.value = reason === 'io server disconnect' ? 'refused' : 'lost';
  });
  socket.on('connect_error', () => {
    state.value = socket.active ? 'lost' : 'refused';
  });
}

export function useSocket(o: SocketOptions): Link {
  const state = shallowRef<LinkState>('connecting');
  // Sent until it is taken: it may be changed later, here or in another tab.
  let { model } = o;
  const socket = io({
    auth: (send: (data: object) => void) =>
      send({ sessionId: o.sessionId, ...(model ? { model } : {}), ...(o.read ? { read: '1' } : {}) }),
    transports: ['websocket', 'polling'],
    reconnectionDelay: 300,
    reconnectionDelayMax: 3000,
    forceNew: true,
  });
  listen(socket, o);
  follow(socket, state);
  socket.on('system:ready', () => {
    model = '';
  });
  const close = () => {
    socket.removeAllListeners();
    socket.disconnect();
  };
  onScopeDispose(close);
  return {
    state,
    close,
    retry: () => {
      state.value = 'connecting';
      socket.connect();
    },
    send: async (name, value) => {
      const wait = name === 'message' ? socket : socket.timeout(ACK_MS);
      try {
        return readAck(
          await (value === undefined
            ? wait.emitWithAck(name)
            : wait.emitWithAck(name, value)),
        );
      } catch {
        return {
          ok: false, code: 'no_answer', messageId: '', queued: 0,
          message: t('chat.noAnswer'),
        };
      }
    },
  };
}
