#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""none and l2fwd: all but the addresses stays as it is, whatever it is."""
import contextlib
import json
import random
import subprocess

import harness
from harness import NEXT, OWN, SENDER
from scapy.all import IP, UDP, Ether, IPv6, Raw

TO = "02:bb:00:00:00:01"


def frames():
    shapes = random.Random(1)
    return [
        Ether(dst=TO, src=SENDER) / IP(dst="192.0.2.1") / UDP() / b"x",
        Ether(dst="ff:ff:ff:ff:ff:ff", src=SENDER) / IPv6(dst="2001:db8::1") / UDP() / b"y",
        Ether(dst=TO, src=SENDER, type=0x9999) / Raw(shapes.randbytes(1500)),
        shapes.randbytes(14),
        shapes.randbytes(2000),
    ]


class L2(harness.Case):
    def test_none_moves_frames_unchanged(self):
        there, back = frames(), frames()[::-1]
        result = self.run_vnf(["none"], [there, back])
        self.assertEqual(result.out[1], [bytes(f) for f in there])
        self.assertEqual(result.out[0], [bytes(f) for f in back])

    def test_none_moves_what_is_no_frame(self):
        self.assertEqual(self.run_vnf(["none"], [[b"\x01"], []]).out[1], [b"\x01"])

    def test_l2fwd_writes_both_addresses(self):
        cases = [("frame %d" % i, port, f, 1 - port, bytes.fromhex((NEXT[1 - port] + OWN[1 - port]).replace(":", "")) + bytes(f)[12:])
                 for i, f in enumerate(frames()) for port in (0, 1)]
        cases += [("cut to %d" % n, 0, bytes(frames()[0])[:n], "short") for n in range(1, 14)]
        self.check(["l2fwd"], 2, cases)

    def test_l2fwd_takes_the_next_hop_it_is_given(self):
        out = self.run_vnf(["l2fwd", "--next-hop", "1=02:cc:00:00:00:0f"], [frames()[:1], []]).out[1]
        self.assertEqual(Ether(out[0]).dst, "02:cc:00:00:00:0f")

    def test_four_ports_are_two_pairs(self):
        marked = [Ether(dst=TO, src=SENDER, type=0x9999) / Raw(bytes([port]) * 50) for port in range(4)]
        out = self.run_vnf(["l2fwd"], [[m] for m in marked]).out
        self.assertEqual([o[0][14] for o in out], [1, 0, 3, 2])

    def test_a_port_alone_sends_back(self):
        out = self.run_vnf(["l2fwd"], [frames()[:1]]).out
        self.assertEqual((Ether(out[0][0]).dst, Ether(out[0][0]).src), (NEXT[0], OWN[0]))

    def test_more_than_one_segment_is_dropped(self):
        # net_pcap splits what does not fit into one buffer.
        result = self.run_vnf(["l2fwd", "--mtu", "1500"], [[frames()[4], random.Random(2).randbytes(5000)], []])
        self.assertEqual(result.end["drops"], {"segments": 1})

    def test_jumbo_frames_over_vhost_user(self):
        # One sends them, by virtio-user, to another, which sends them back, by vhost: each way has frames of the largest MTU, with two tags as well.
        sent = [random.Random(n).randbytes(n) for n in (9014, 9022, 60)]
        with self.vhost_reflector("9000") as socket:
            vdevs, out = self.vdevs([sent])
            device = "net_virtio_user0,path=%s,queues=1,mac=02:aa:00:00:00:02" % socket
            command = [*harness.eal(*vdevs, "--vdev", device, "--single-file-segments", memory=160), "--", "none", "--yield", "--mtu", "9000"]
            process = subprocess.run([*command, "--packets", str(2 * len(sent))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual([f[12:] for f in harness.Result(process, out).out[0]], [f[12:] for f in sent])

    @contextlib.contextmanager
    def vhost_reflector(self, mtu):
        socket = self.path("socket")
        command = [*harness.eal("--vdev", "net_vhost0,iface=%s,queues=1" % socket, memory=160), "--", "l2fwd", "--yield", "--mtu", mtu]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                self.assertEqual(json.loads(process.stdout.readline())["event"], "ready")
                yield socket
            finally:
                process.terminate()


if __name__ == "__main__":
    harness.main()
