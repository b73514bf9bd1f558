# SPDX-License-Identifier: Apache-2.0
"""A load balancer with workers that come and go while packets flow."""
import contextlib
import json
import signal
import subprocess
import time

import harness
from harness import SENDER
from scapy.all import IP, UDP, Ether, wrpcap

TO = "02:bb:00:00:00:01"
PATIENCE = 60  # s
FLOWS = 64


def ether(**more):
    return Ether(dst=TO, src=SENDER, **more)


def both(port, l4=UDP):
    """A packet of a flow, and one of the other direction."""
    there = ether() / IP(src="192.0.2.1", dst="198.51.100.1") / l4(sport=port, dport=443) / b"there"
    back = Ether(dst=SENDER, src=TO) / IP(src="198.51.100.1", dst="192.0.2.1") / l4(sport=443, dport=port) / b"back"
    return there, back


def up(end):
    return [w["up"] for w in end["workers"]]


class Case(harness.Case):
    @contextlib.contextmanager
    def running(self, command):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                self.assertEqual(json.loads(process.stdout.readline())["event"], "ready")
                yield process
            finally:
                process.kill()

    def sockets(self, workers):
        return [self.path("worker%d" % i) for i in range(1, workers + 1)]

    def balancer(self, sockets, *options):
        """Workers by vhost-user, and packets of many flows without end from a file."""
        wrpcap(self.path("in"), [bytes(both(5010 + i)[0]) for i in range(FLOWS)], linktype=1)
        vdevs = ["--vdev", "net_pcap0,rx_pcap=%s,infinite_rx=1" % self.path("in")]
        for i, socket in enumerate(sockets):
            vdevs += ["--vdev", "net_vhost%d,iface=%s,queues=1" % (i, socket)]
        return self.running([*harness.eal(*vdevs, memory=160), "--", "lb", "--yield", *options])

    def worker(self, socket, *mode):
        device = "net_virtio_user0,path=%s,queues=1,mac=02:aa:00:00:00:02" % socket
        return self.running([*harness.eal("--vdev", device, "--single-file-segments", memory=64), "--", *mode, "--yield"])

    def wait(self, process, is_so):
        """What was counted at the moment from which it is so."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            process.send_signal(signal.SIGUSR1)
            seen = json.loads(process.stdout.readline())
            if is_so(seen):
                return seen
            time.sleep(0.02)
        self.fail("not within %d s; last seen: %s" % (PATIENCE, seen))

    def flowing(self, process, since, *workers):
        """Packets go to each of these workers, and come back from it."""
        def more(seen):
            return all(seen["ports"][w][way] > since["ports"][w][way] for w in workers for way in ("sent", "received"))
        return self.wait(process, more)
