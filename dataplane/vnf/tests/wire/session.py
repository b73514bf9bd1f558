#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""session: workers of a load balancer whose sessions are in a real Redis. None is lost, however a worker goes; a worker that leaves loses no packet."""
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time

import balanced
import harness
from balanced import FLOWS, PATIENCE, both, up
from scapy.all import ARP, UDP, Ether

ALL = """local all = {}
for _, key in ipairs(redis.call('KEYS', 'session:*')) do
  local fields, one = redis.call('HGETALL', key), {}
  for i = 1, #fields, 2 do one[fields[i]] = fields[i + 1] end
  all[key] = one
end
return cjson.encode(all)"""

if not shutil.which("redis-server"):
    print("redis-server is missing (Debian: redis-server)")
    sys.exit(77)


class Session(balanced.Case):
    @contextlib.contextmanager
    def redis(self):
        command = ["redis-server", "--port", "0", "--unixsocket", self.path("redis"), "--save", "", "--dir", self.home.name]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                self.until("Redis answers", lambda: self.cli("PING") == "PONG")
                yield process
            finally:
                process.send_signal(signal.SIGCONT)
                process.kill()

    def cli(self, *command):
        return subprocess.run(["redis-cli", "-s", self.path("redis"), *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=PATIENCE).stdout.strip()

    def stored(self):
        return json.loads(self.cli("EVAL", ALL, "0"))

    def until(self, what, is_so):
        end = time.monotonic() + PATIENCE
        while not is_so():
            self.assertLess(time.monotonic(), end, "never: " + what)
            time.sleep(0.02)

    def session(self, socket):
        return self.worker(socket, "session", "--redis", "unix:" + self.path("redis"))

    def leave(self, worker):
        """What a worker that is asked to end reports in the end."""
        worker.terminate()
        lines = worker.stdout.read().splitlines()
        self.assertEqual(worker.wait(PATIENCE), 0)
        return json.loads(lines[-1])

    def continues(self, before, after):
        """Each session that was there is there still, and none was begun again."""
        self.assertEqual({k: s["id"] for k, s in after.items()}, {k: s["id"] for k, s in before.items()})
        for key, session in before.items():
            self.assertGreaterEqual(int(after[key]["packets"]), int(session["packets"]), key)

    def begin(self, stack):
        """A balancer and two workers. The second one began all sessions, and the first has some of them from Redis."""
        sockets = self.sockets(2)
        lb = stack.enter_context(self.balancer(sockets, "--announced"))
        began = stack.enter_context(self.session(sockets[1]))
        self.wait(began, lambda end: end["sessions"]["created"] == FLOWS)
        took = stack.enter_context(self.session(sockets[0]))
        self.wait(lb, lambda end: up(end) == [True, True])
        self.wait(took, lambda end: end["sessions"]["resumed"] > 0)
        self.until("each worker has sessions of its own", lambda: len({s["worker"] for s in self.stored().values()}) == 2)
        return lb, (took, began), sockets

    def test_sessions_outlive_a_killed_worker(self):
        with self.redis(), contextlib.ExitStack() as stack:
            lb, (stays, victim), sockets = self.begin(stack)
            before = self.stored()
            victim.kill()
            victim.wait(PATIENCE)
            self.wait(lb, lambda end: up(end) == [True, False])
            self.until("all are at the other worker", lambda: {s["worker"] for s in self.stored().values()} == {self.name(stays)})
            self.continues(before, self.stored())
            self.wait(stays, lambda end: (end["sessions"]["resumed"], end["sessions"]["created"]) == (FLOWS, 0))
            # Another takes its place.
            replaced = stack.enter_context(self.session(sockets[1]))
            self.wait(lb, lambda end: up(end) == [True, True])
            self.wait(replaced, lambda end: end["sessions"]["resumed"] > 0 and end["sessions"]["created"] == 0)
            self.continues(before, self.stored())

    def name(self, worker):
        """How Redis calls it."""
        return self.wait(worker, lambda end: True)["redis"]["worker"]

    def test_a_worker_that_leaves_loses_nothing(self):
        with self.redis(), contextlib.ExitStack() as stack:
            lb, workers, sockets = self.begin(stack)
            before, ends = self.stored(), []
            for i, worker in ((1, workers[1]), (0, workers[0])):
                end = self.leave(worker)
                ends.append(end)
                seen = self.wait(lb, lambda end: not up(end)[i])
                # The balancer's count includes the announcement that it returned.
                self.assertEqual(end["received"], seen["ports"][1 + i]["sent"])
                self.assertEqual(end["redis"]["packets"], end["sessions"]["packets"])
            after = self.stored()
            self.continues(before, after)
            self.assertEqual(sum(int(s["packets"]) for s in after.values()), sum(end["sessions"]["packets"] for end in ends))
            self.assertEqual(sum(int(s["bytes"]) for s in after.values()), sum(int(s["packets"]) for s in after.values()) * len(both(5010)[0]))

    def test_redis_stops_for_a_while(self):
        # Packets flow on, and in the end each counts once: what was under way is sent again.
        with self.redis() as redis, contextlib.ExitStack() as stack:
            lb, workers, _ = self.begin(stack)
            redis.send_signal(signal.SIGSTOP)
            self.wait(workers[0], lambda end: end["redis"]["errors"] >= 2)
            away = self.wait(lb, lambda end: True)
            self.flowing(lb, away, 1, 2)
            redis.send_signal(signal.SIGCONT)
            ends = [self.leave(w) for w in workers]
            for end in ends:
                self.assertEqual((end["redis"]["packets"], end["redis"]["regressed"]), (end["sessions"]["packets"], 0))
                self.assertGreater(end["redis"]["lag_max_ns"], 1e9)
            self.assertEqual(sum(int(s["packets"]) for s in self.stored().values()), sum(end["sessions"]["packets"] for end in ends))

    def test_redis_is_absent(self):
        # The worker ends all the same, and says what is lost.
        with contextlib.ExitStack() as stack:
            sockets = self.sockets(1)
            lb = stack.enter_context(self.balancer(sockets))
            worker = stack.enter_context(self.session(sockets[0]))
            self.flowing(lb, self.wait(lb, lambda end: up(end) == [True]), 1)
            end = self.leave(worker)
            self.assertEqual((end["redis"]["packets"], end["redis"]["connects"]), (0, 0))
            self.assertEqual((end["sessions"]["live"], end["sessions"]["created"]), (FLOWS, 0))
            self.assertGreater(end["sessions"]["packets"], 0)

    def test_a_name_that_is_taken(self):
        # One session cannot be stored; the others are.
        with self.redis(), contextlib.ExitStack() as stack:
            self.cli("SET", "session:udp:192.0.2.1/5010-198.51.100.1/443", "something else")
            sockets = self.sockets(1)
            stack.enter_context(self.balancer(sockets))
            worker = stack.enter_context(self.session(sockets[0]))
            self.wait(worker, lambda end: end["redis"]["refused"] > 0 and end["sessions"]["created"] == FLOWS - 1)

    def test_packets_are_returned(self):
        frames = [both(5010 + i)[0] for i in range(3)] + [Ether(dst=balanced.TO, src=harness.SENDER) / ARP()]
        vdevs, (out,) = self.vdevs([frames])
        command = [*harness.eal(*vdevs), "--", "session", "--next-hop", "0=02:00:00:00:00:77", "--packets", "4"]
        result = harness.Result(subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120, check=True), [out])
        sent = [f for f in result.out[0] if f[12:14] != b"\x88\xb5"]
        self.assertEqual([f[:6].hex(":") for f in sent], ["02:00:00:00:00:77"] * 4)
        self.assertEqual([f[12:] for f in sent], [bytes(f)[12:] for f in frames])
        self.assertEqual((result.end["received"], result.end["sent"], result.end["sessions"]["live"]), (4, 4, 3))


if __name__ == "__main__":
    harness.main()
