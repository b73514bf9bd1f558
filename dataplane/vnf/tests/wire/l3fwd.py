#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""l3fwd: longest match, and what RFC 1812 asks of a router."""
import ipaddress
import random

import harness
from harness import NEXT, OWN, SENDER, cut, hop, patched
from scapy.all import ARP, IP, UDP, Dot1Q, Ether, IPOption, IPv6, Raw

ROUTES = """
# the longest prefix wins
0.0.0.0/0        0
10.0.0.0/8       1
10.1.0.0/16      0 02:cc:00:00:00:01   # by another next hop
10.1.1.0/24      1 02:cc:00:00:00:02
10.1.1.128/25    0 02:cc:00:00:00:03
10.1.1.200/32    1 02:cc:00:00:00:04
"""


def frame(ip, payload=b"payload", **more):
    return Ether(dst=OWN[0], src=SENDER, **more) / ip / payload


def udp(dst, ttl=64, **more):
    return IP(src="192.0.2.1", dst=dst, ttl=ttl, **more) / UDP(sport=1000, dport=2000)


def forwarded(sent, port, mac=None):
    """The same frame one hop on."""
    sent = Ether(bytes(sent))
    return Ether(dst=mac or NEXT[port], src=OWN[port]) / hop(sent[IP])


OF_1000 = [1, 1, 1, 1, 1, 2, 3, 6, 14, 8, 13, 25, 42, 50, 110, 100, 600, 4, 4, 3, 3, 3, 3, 1, 1]


def splitmix64(state):
    while True:
        state = (state + 0x9e3779b97f4a7c15) % 2**64
        z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9 % 2**64
        z = (z ^ z >> 27) * 0x94d049bb133111eb % 2**64
        yield z ^ z >> 31


def generated(count, seed, ports):
    """The routes that --generate and --seed make: prefix, bits, port."""
    lengths = [8 + i for i, n in enumerate(OF_1000) for _ in range(n)]
    table, seen = [], set()
    for number in splitmix64(seed):
        if len(table) == count:
            return table
        bits = lengths[(number >> 32) % 1000]
        prefix = number % 2**32 >> (32 - bits) << (32 - bits)
        key = prefix | 1 << (31 - bits) if bits < 32 else prefix
        if 1 <= prefix >> 24 <= 223 and prefix >> 24 != 127 and prefix >> 16 != 0xa9fe and key not in seen:
            seen.add(key)
            table.append((prefix, bits, len(table) % ports))


class L3fwd(harness.Case):
    def routes(self, text=ROUTES):
        with open(self.path("routes"), "w") as file:
            file.write(text)
        return ["l3fwd", "--routes", self.path("routes")]

    def forward(self, cases, options=()):
        return self.check([*self.routes(), *options], 2, cases, memory=128)

    def test_longest_match(self):
        to = [("10.2.0.1", 1, None), ("10.1.2.1", 0, "02:cc:00:00:00:01"), ("10.1.1.1", 1, "02:cc:00:00:00:02"),
              ("10.1.1.129", 0, "02:cc:00:00:00:03"), ("10.1.1.200", 1, "02:cc:00:00:00:04"), ("10.1.1.201", 0, "02:cc:00:00:00:03"),
              ("198.51.100.1", 0, None)]
        result = self.forward([(d, 0, frame(udp(d)), port, forwarded(frame(udp(d)), port, mac)) for d, port, mac in to])
        seen = self.tshark(result.files[1], ["ip.dst", "ip.ttl", "ip.checksum.status", "udp.checksum.status"])
        self.assertEqual(seen, [[d, "63", "1", "1"] for d, port, _ in to if port == 1])

    def test_checksum_is_updated_for_every_ttl_and_odd_sums(self):
        # RFC 1624: also where the sum of the header is such that an older formula is wrong.
        shapes = random.Random(3)
        sent = [frame(udp("10.2.0.1", ttl=ttl, id=shapes.randrange(65536), tos=shapes.randrange(64) << 2)) for ttl in range(2, 256)]
        rest = 0xffff - IP(bytes(frame(udp("10.2.0.1", id=0)))[14:]).chksum
        for checksum in (0, 0xff, 0x100, 0x101, 0xfeff, 0xff00, 0xfffe):  # about where it becomes 0 or ffff
            sent.append(frame(udp("10.2.0.1", id=(0xffff - checksum - rest) % 0xffff)))
            self.assertEqual(IP(bytes(sent[-1])[14:]).chksum, checksum)
        self.forward([("%d" % i, 0, f, 1, forwarded(f, 1)) for i, f in enumerate(sent)])

    def test_what_is_forwarded_untouched(self):
        good = {
            "options": frame(IP(src="192.0.2.1", dst="10.2.0.1", ttl=9, options=[IPOption(b"\x94\x04\x00\x00")]) / UDP() / b"x"),
            "40 bytes of options": frame(IP(src="192.0.2.1", dst="10.2.0.1", options=[IPOption(b"\x44\x28\x05\x00" + bytes(36))]) / UDP()),
            "first fragment": frame(udp("10.2.0.1", flags="MF")),
            "last fragment": frame(IP(src="192.0.2.1", dst="10.2.0.1", proto=17, frag=185) / Raw(b"rest")),
            "no payload at all": Ether(dst=OWN[0], src=SENDER) / IP(src="192.0.2.1", dst="10.2.0.1"),
            "other protocol": frame(IP(src="192.0.2.1", dst="10.2.0.1", proto=99)),
            "full MTU": frame(udp("10.2.0.1"), b"z" * 1472),
        }
        cases = [(name, 0, f, 1, forwarded(f, 1)) for name, f in good.items()]
        padded = bytes(good["no payload at all"]) + bytes(26)
        cases.append(("padding", 0, padded, 1, bytes(forwarded(good["no payload at all"], 1)) + bytes(26)))
        self.forward(cases)

    def test_what_is_dropped(self):
        good, total = frame(udp("10.2.0.1")), 20 + 8 + 7
        options = frame(IP(src="192.0.2.1", dst="10.2.0.1", options=[IPOption(b"\x94\x04\x00\x00")]) / UDP())

        def ip(**fields):
            return frame(IP(src="192.0.2.1", dst="10.2.0.1", **fields) / UDP())

        cases = [
            ("TTL 1", frame(udp("10.2.0.1", ttl=1)), "ttl"), ("TTL 0", frame(udp("10.2.0.1", ttl=0)), "ttl"),
            ("version 6 in a header of 4", ip(version=6), "ip_header"), ("IHL 4", ip(ihl=4), "ip_header"), ("IHL 0", ip(ihl=0), "ip_header"),
            ("shorter than its header", ip(len=19), "length"), ("shorter than its options", patched(options, 16, b"\x00\x14"), "length"),
            ("longer than the frame", frame(udp("10.2.0.1", len=total + 1)), "length"), ("longest", ip(len=65535), "length"),
            ("wrong checksum", ip(chksum=0x1234), "checksum"), ("changed TTL", patched(good, 22, b"\x33"), "checksum"),
            ("changed options", patched(options, 34, b"\x95"), "checksum"),
            ("IPv6", Ether(dst=OWN[0], src=SENDER) / IPv6() / UDP(), "ethertype"), ("tagged", Ether(dst=OWN[0]) / Dot1Q(vlan=5) / udp("10.2.0.1"), "ethertype"),
            ("too big", frame(udp("10.2.0.1"), b"z" * 1473), "too_big"),
        ]
        cases += [("to " + a, frame(udp(a)), "address") for a in ("0.0.0.1", "127.0.0.1", "169.254.3.4", "224.0.0.5", "240.0.0.1", "255.255.255.255")]
        cases += [("from " + a, frame(IP(src=a, dst="10.2.0.1") / UDP()), "address") for a in ("0.0.0.0", "127.9.9.9", "169.254.1.1", "239.1.1.1", "255.255.255.255")]
        cases += [("cut to %d" % n, cut(good, n), "short" if n < 34 else "length") for n in range(1, len(good))]
        self.forward([(name, 0, f, reason) for name, f, reason in cases])

    def test_no_route(self):
        self.check(self.routes("10.0.0.0/8 1\n"), 2, [("there is none", 0, frame(udp("11.0.0.1")), "no_route"),
                                                      ("there is one", 0, frame(udp("10.0.0.1")), 1, forwarded(frame(udp("10.0.0.1")), 1))], memory=128)

    def test_default_route(self):
        sent = frame(udp("11.0.0.1"))
        self.check([*self.routes("10.0.0.0/8 1\n"), "--default-route", "0"], 2, [("default", 0, sent, 0, forwarded(sent, 0))], memory=128)

    def test_arp_for_its_own_address(self):
        ask = Ether(dst="ff:ff:ff:ff:ff:ff", src=SENDER) / ARP(hwsrc=SENDER, psrc="192.0.2.9", pdst="192.0.2.1")
        answer = Ether(dst=SENDER, src=OWN[0]) / ARP(op=2, hwsrc=OWN[0], psrc="192.0.2.1", hwdst=SENDER, pdst="192.0.2.9")
        result = self.forward([("asked", 0, ask, 0, answer), ("at the other port", 1, ask, "arp")], ["--ip", "0=192.0.2.1"])
        self.assertEqual(result.end["arp_replies"], 1)

    def test_generated_routes_are_matched_as_by_hand(self):
        # docs/vnf.md says how routes are made; the longest match is found by looking at all of them.
        table = generated(3000, 7, 2)
        shapes, sent, cases = random.Random(4), [], []
        for prefix, bits, _ in shapes.sample(table, 150):
            sent.append(prefix | shapes.randrange(1 << (32 - bits)))
        sent += [shapes.randrange(1 << 24, 224 << 24) for _ in range(50)]
        for n in sent:
            address = ipaddress.ip_address(n)
            if address.is_loopback or address.is_link_local:
                continue
            f = frame(udp(str(address)))
            best = max((t for t in table if n >> (32 - t[1]) == t[0] >> (32 - t[1])), key=lambda t: t[1], default=None)
            cases.append((str(address), 0, f, *(("no_route",) if best is None else (best[2], forwarded(f, best[2])))))
        self.check(["l3fwd", "--generate", "3000", "--seed", "7"], 2, cases, memory=128)

    def test_a_million_routes(self):
        sent = frame(udp("198.51.100.1"))
        result = self.run_vnf(["l3fwd", "--generate", "1000000", "--seed", "1", "--default-route", "1"], [[sent] * 10, []], memory=640)
        self.assertEqual(result.end["sent"], 10)

    def test_mutated_frames(self):
        options = frame(IP(src="192.0.2.1", dst="10.2.0.1", options=[IPOption(b"\x94\x04\x00\x00")]) / UDP())
        sent = list(harness.mutations(random.Random(5), [frame(udp("10.1.1.1")), options], 3000))
        result = self.run_vnf(self.routes(), [sent[::2], sent[1::2]], memory=128)
        self.assertGreater(len(result.end["drops"]), 4)
        self.assertGreater(result.end["sent"], 0)


if __name__ == "__main__":
    harness.main()
