#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""none and l2fwd: all but the addresses stays as it is, whatever it is."""
import random

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


if __name__ == "__main__":
    harness.main()
