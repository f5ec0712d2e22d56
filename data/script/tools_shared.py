"""Calls of several threads at a time, and of event loops. See tools.py, which
loads this file when a script has them."""
import _thread

import tools

_OPEN_MAX = 64  # calls of one event loop at a time


class _Wait:
    """One call that waits. `taker` gets its answer; without one a thread
    waits, for whom `turn` is released: it has its answer, or is to read."""

    def __init__(self, number, taker):
        self.number = number
        self.taker = taker
        self.answer = None
        self.turn = None if taker else _thread.allocate_lock()
        if not taker:
            self.turn.acquire()


class Shared:
    """The connection. One thread at a time reads, for all that wait."""

    def __init__(self, connection):
        self.connection = connection
        self.guard = _thread.allocate_lock()  # of the members below
        self.writing = _thread.allocate_lock()
        self.reading = False
        self.waiting = {}  # id: _Wait
        self.aio = _Aio(self)

    def send(self, frame, taker=None):
        line = self.connection.encode(frame)
        wait = _Wait(frame["id"], taker)
        with self.guard:
            if self.connection.ended:
                raise tools.Gone("there is no connection to the tools")
            self.waiting[wait.number] = wait
        try:
            with self.writing:
                self.connection.write(line)
        except OSError:
            self.end()
        return wait

    def end(self):
        gone = {"error": {"kind": "gone",
                          "message": "the connection to the tools ended"}}
        with self.guard:
            self.connection.ended = True
            for number in list(self.waiting):
                self.give(number, gone)

    def give(self, number, answer):
        wait = self.waiting.pop(number, None)
        if wait is None:
            return
        wait.answer = answer
        if wait.taker:
            wait.taker(answer)
        elif wait.turn.locked():  # else it was released to read
            wait.turn.release()

    def drop(self, wait):
        """Nobody waits for the answer any more."""
        with self.guard:
            self.waiting.pop(wait.number, None)

    def read(self):
        """Read once; only by the thread that has set `reading`."""
        try:
            answers = self.connection.read()
        except OSError:
            self.end()
            return
        with self.guard:
            for answer in answers:
                self.give(answer["id"], answer)

    def begin_reading(self):
        with self.guard:
            mine = not self.reading
            self.reading = True
        return mine

    def end_reading(self):
        """Another thread that waits goes on reading, if there is one."""
        with self.guard:
            for wait in self.waiting.values():
                if not wait.taker:
                    wait.turn.release()
                    return
            self.reading = False

    def ask(self, frame):
        wait = self.send(frame)
        mine = self.begin_reading()
        if not mine:
            wait.turn.acquire()
        if wait.answer is None:  # it is our turn to read
            mine = True
            while wait.answer is None:
                self.read()
        if mine:
            self.end_reading()
        return wait.answer

    def on_readable(self):
        """For an event loop: another thread may be reading already."""
        if self.begin_reading():
            self.read()
            self.end_reading()


class _Aio:
    """tools.aio: the same calls for `await`."""

    def __init__(self, shared):
        self._shared = shared
        self._loops = {}  # event loop: [semaphore, calls under way]

    async def _ask(self, frame):
        import asyncio  # takes longer to load than all the rest
        connection = self._shared.connection
        loop = asyncio.get_running_loop()
        state = self._loops.setdefault(loop, [asyncio.Semaphore(_OPEN_MAX), 0])
        if state[1] == 0 and not connection.ended:
            loop.add_reader(connection.fd, self._shared.on_readable)
        state[1] += 1
        try:
            async with state[0]:
                return await self._exchange(loop, frame)
        finally:
            state[1] -= 1
            if state[1] == 0:
                del self._loops[loop]
                if connection.fd is not None:
                    loop.remove_reader(connection.fd)

    async def _exchange(self, loop, frame):
        future = loop.create_future()

        def finish(answer):
            if not future.done():
                future.set_result(answer)

        wait = self._shared.send(
            frame, lambda a: loop.call_soon_threadsafe(finish, a))
        try:
            return await future
        finally:
            self._shared.drop(wait)

    def call(self, name, arguments=None, raw=False):
        return self._call(tools._frame(name, arguments, tools._line()), raw)

    async def _call(self, frame, raw):
        return tools._value(await self._ask(frame), raw)

    async def find(self, words, limit=10):
        return tools._found(await self._ask({"find": words, "limit": limit}))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return tools._Tool(name, self.call)
