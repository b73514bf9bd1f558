#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bng: QinQ on the CPE side, IPv4 in GRE under an MPLS label on the core side."""
import random

import harness
from harness import NEXT, OWN, SENDER, cut, hop, patched
from scapy.all import ARP, IP, UDP, Dot1AD, Dot1Q, Ether, IPOption, Raw
from scapy.contrib.mpls import MPLS
from scapy.layers.l2 import GRE

OPTIONS = ["bng", "--mtu", "1=1600"]
CPE_IP = ["198.18.%d.1" % p for p in range(4)]
TAGS, LABELLED = 22, 18


def mac_of(user):
    return "02:00:00:%02x:%02x:%02x" % (user >> 16, user >> 8 & 255, user & 255)


def cpe(s, c, ip, port=0, src=SENDER, dst=None):
    return Ether(dst=dst or OWN[port], src=src) / Dot1AD(vlan=s, type=0x8100) / Dot1Q(vlan=c) / ip


def core(key, ip, port=1, src=None, dst=None, ether=None, label=3, ttl=255, outer=None):
    """As it goes to the core; with outer addresses turned round, as it comes from there."""
    ip = IP(bytes(ip))
    ether = ether or Ether(dst=NEXT[port], src=OWN[port])
    outer = outer or IP(src=src or CPE_IP[port], dst=dst or "198.18.%d.2" % port, id=0, flags="DF", ttl=64, tos=ip.tos)
    return ether / MPLS(label=label, s=1, ttl=ttl) / outer / GRE(key_present=1, key=key) / ip


def down(key, ip, port=1, **more):
    return core(key, ip, port, src="198.18.%d.2" % port, dst=CPE_IP[port], ether=Ether(dst=OWN[port], src=SENDER), **more)


def udp(payload=b"", **more):
    return IP(bytes(IP(src="100.64.1.2", dst="203.0.113.9", **more) / UDP(sport=1, dport=2) / payload))


def delivered(user, ip, port=0, s=None, c=None):
    s, c = s or 1 + user // 256 % 128, c or 1 + user % 256
    return cpe(s, c, hop(ip), port, src=OWN[port], dst=mac_of(user))


class Bng(harness.Case):
    def test_lengths_are_those_of_the_format(self):
        # 78 bytes with FCS for an inner datagram without payload.
        self.assertEqual(len(core(0, udp())), 74)
        self.assertEqual(len(cpe(1, 1, udp())), 50)

    def test_both_directions_of_users_at_the_ends_of_all_ranges(self):
        users = [(0, s, c, (s - 1) * 256 + c - 1) for s, c in ((1, 1), (1, 256), (128, 1), (128, 256), (77, 99))]
        users += [(2, s, c, 32768 + (s - 1) * 256 + c - 1) for s, c in ((1, 1), (128, 256))]
        cases = []
        for port, s, c, user in users:
            ip = udp(b"of %d" % user)
            cases.append(("up %d" % user, port, cpe(s, c, ip, port), port + 1, core(user, hop(ip), port + 1)))
            # Any core port has any user.
            cases.append(("down %d" % user, 1, down(user, ip), port, delivered(user, ip, port)))
        result = self.check([*OPTIONS, "--mtu", "3=1600"], 4, cases)
        up = self.tshark(result.files[1], ["mpls.label", "mpls.bottom", "gre.key", "gre.proto", "ip.ttl", "ip.checksum.status"])
        self.assertEqual(up, [["3", "1", "0x%08x" % u, "0x0800", "64,63", "1,1"] for p, _, _, u in users if p == 0])
        tags = self.tshark(result.files[0], ["ieee8021ad.id", "vlan.id", "eth.type", "ip.ttl"])
        self.assertEqual(tags, [[str(s), str(c), "0x88a8", "63"] if row[0] else row for (_, s, c, _), row in zip(users, tags)])

    def test_padding_of_a_smallest_frame_goes_no_further(self):
        ip = udp()
        self.check(OPTIONS, 2, [("60 bytes", 0, bytes(cpe(1, 1, ip)) + bytes(10), 1, core(0, hop(ip))),
                                ("behind the outer datagram", 1, bytes(down(0, ip)) + b"trailer", 0, delivered(0, ip))])

    def test_tags_as_configured(self):
        options = [*OPTIONS, "--svlans", "2", "--svlan-base", "4000", "--cvlan-base", "1000", "--label", "1048575"]
        ip = udp(b"x")
        self.check(options, 2, [
            ("last", 0, cpe(4001, 1255, ip), 1, core(511, hop(ip), label=1048575)),
            ("down", 1, down(511, ip, label=1048575), 0, delivered(511, ip, 0, 4001, 1255)),
            ("beyond", 0, cpe(4002, 1000, ip), "unknown_user"), ("before", 0, cpe(4000, 999, ip), "unknown_user")])

    def test_all_65536_users_on_one_port(self):
        ip = udp(b"x")
        self.check([*OPTIONS, "--svlans", "256"], 2, [("up", 0, cpe(256, 256, ip), 1, core(65535, hop(ip))),
                                                      ("down", 1, down(65535, ip), 0, delivered(65535, ip, 0, 256, 256)),
                                                      ("beyond", 1, down(65536, ip), "unknown_user")])

    def test_priority_bits_do_not_matter(self):
        ip = udp(b"x")
        tagged = patched(patched(cpe(1, 1, ip), 14, b"\xf0"), 18, b"\xa0")
        self.check(OPTIONS, 2, [("priority and drop eligible", 0, tagged, 1, core(0, hop(ip)))])

    def test_options_and_fragments_inside(self):
        inner = [IP(bytes(IP(src="100.64.1.2", dst="203.0.113.9", options=[IPOption(b"\x94\x04\x00\x00")]) / UDP() / b"o")),
                 IP(bytes(IP(src="100.64.1.2", dst="203.0.113.9", flags="MF", proto=17) / Raw(b"12345678"))),
                 IP(bytes(IP(src="100.64.1.2", dst="203.0.113.9", frag=99, proto=17) / Raw(b"rest")))]
        cases = []
        for n, ip in enumerate(inner):
            cases += [("up %d" % n, 0, cpe(1, 1, ip), 1, core(0, hop(ip))), ("down %d" % n, 1, down(0, ip), 0, delivered(0, ip))]
        outer = IP(src="198.18.1.2", dst=CPE_IP[1], options=[IPOption(b"\x94\x04\x00\x00")])
        cases.append(("options outside", 1, down(0, inner[0], outer=outer), 0, delivered(0, inner[0])))
        self.check(OPTIONS, 2, cases)

    def test_congestion_marks(self):
        # RFC 6040: what left with ECN comes back with what the tunnel added; CE over a packet that knows nothing of it is a drop.
        marked, cases = [], []
        for outer in range(4):
            for inner in range(4):
                ip = udp(b"%d%d" % (outer, inner), tos=0x28 | inner)
                comes = down(7, ip, outer=IP(src="198.18.1.2", dst=CPE_IP[1], tos=0x48 | outer))
                want = IP(bytes(ip))
                want.tos = 0x28 | {(3, 1): 3, (3, 2): 3, (1, 2): 1}.get((outer, inner), inner)
                del want.chksum
                cases.append(("%d over %d" % (outer, inner), 1, comes, *(("ecn",) if (outer, inner) == (3, 0) else (0, delivered(7, IP(bytes(want)))))))
            marked.append(("up %d" % outer, 0, cpe(1, 8, udp(tos=0xb8 | outer)), 1, core(7, hop(udp(tos=0xb8 | outer)))))
        self.check(OPTIONS, 2, cases + marked)

    def test_arp_is_answered_and_the_address_learned(self):
        ip = udp(b"x")

        def ask(s, c, target, src=SENDER, **more):
            return cpe(s, c, ARP(hwsrc=src, psrc="100.64.1.2", pdst=target, **more), src=src, dst="ff:ff:ff:ff:ff:ff")

        answer = Ether(dst=SENDER, src=OWN[0]) / Dot1AD(vlan=2, type=0x8100) / Dot1Q(vlan=3) / ARP(
            op=2, hwsrc=OWN[0], psrc="198.51.100.1", hwdst=SENDER, pdst="100.64.1.2")
        options = [*OPTIONS, "--ip", "0=198.51.100.1"]
        cases = [("asked", 0, ask(2, 3, "198.51.100.1"), 0, answer), ("for somebody else", 0, ask(2, 3, "198.51.100.2"), "arp"),
                 ("an answer", 0, ask(2, 4, "198.51.100.1", op=2, src="02:ee:00:00:00:01"), "arp"),
                 ("from a group", 0, ask(2, 3, "198.51.100.1", src="01:00:5e:00:00:01"), "arp"),
                 ("not Ethernet", 0, ask(2, 3, "198.51.100.1", hwtype=6), "arp"), ("not of IPv4", 0, ask(2, 3, "198.51.100.1", ptype=0x86dd), "arp"),
                 ("cut", 0, cut(ask(2, 3, "198.51.100.1"), TAGS + 27), "short"), ("of nobody", 0, ask(129, 3, "198.51.100.1"), "unknown_user")]
        core_ask = Ether(dst="ff:ff:ff:ff:ff:ff", src=SENDER) / ARP(hwsrc=SENDER, psrc="198.18.1.2", pdst=CPE_IP[1])
        cases.append(("core", 1, core_ask, 1, Ether(dst=SENDER, src=OWN[1]) / ARP(op=2, hwsrc=OWN[1], psrc=CPE_IP[1], hwdst=SENDER, pdst="198.18.1.2")))
        # Port 0 is read first, so that the core's packets come to whom it has learned.
        for user, mac in ((256 + 2, SENDER), (256 + 3, "02:ee:00:00:00:01"), (256 + 4, mac_of(256 + 4))):
            want = delivered(user, ip)
            want.dst = mac
            cases.append(("to %d" % user, 1, down(user, ip), 0, want))
        result = self.check(options, 2, cases)
        self.assertEqual(result.end["arp_replies"], 2)

    def test_what_is_dropped_of_the_customers(self):
        good, ip = cpe(1, 1, udp(b"xyz")), udp(b"xyz")
        cases = [
            ("untagged", Ether(dst=OWN[0]) / ip, "vlan_tags"), ("one tag", Ether(dst=OWN[0]) / Dot1Q(vlan=1) / ip, "vlan_tags"),
            ("one S-tag", Ether(dst=OWN[0]) / Dot1AD(vlan=1) / ip, "vlan_tags"),
            ("two C-tags", Ether(dst=OWN[0]) / Dot1Q(vlan=1) / Dot1Q(vlan=1) / ip, "vlan_tags"),
            ("two S-tags", Ether(dst=OWN[0]) / Dot1AD(vlan=1) / Dot1AD(vlan=1) / ip, "vlan_tags"),
            ("three tags", cpe(1, 1, Dot1Q(vlan=1) / ip), "ethertype"),
            ("VLAN 0", cpe(0, 1, ip), "unknown_user"), ("S-VLAN 129", cpe(129, 1, ip), "unknown_user"), ("C-VLAN 0", cpe(1, 0, ip), "unknown_user"),
            ("C-VLAN 257", cpe(1, 257, ip), "unknown_user"), ("VLAN 4095", cpe(4095, 4095, ip), "unknown_user"),
            ("IPv6", patched(good, 20, b"\x86\xdd"), "ethertype"), ("TTL 1", cpe(1, 1, udp(ttl=1)), "ttl"), ("checksum", patched(good, TAGS + 8, b"\x07"), "checksum"),
            ("IHL 3", patched(good, TAGS, b"\x43"), "ip_header"), ("version 5", patched(good, TAGS, b"\x55"), "ip_header"),
            ("longer than it is", patched(good, TAGS + 2, b"\x40\x00"), "length"), ("to a group", cpe(1, 1, IP(src="100.64.1.2", dst="224.0.0.1")), "address"),
            ("too big for the core", cpe(1, 1, udp(b"z" * (1600 - 4 - 28 - 28 + 1))), "too_big"),
            ("just fits", cpe(1, 1, udp(b"z" * (1600 - 4 - 28 - 28))), 1, core(0, hop(udp(b"z" * (1600 - 4 - 28 - 28))))),
        ]
        cases += [("cut to %d" % n, cut(good, n), "short" if n < TAGS + 20 else "length") for n in range(1, len(good))]
        self.check(OPTIONS, 2, [(name, 0, frame, *want) for name, frame, *want in cases])

    def test_what_is_dropped_of_the_core(self):
        ip = udp(b"xyz")
        good, gre = bytes(down(9, ip)), LABELLED + 20
        outside = {"src": "198.18.1.2", "dst": CPE_IP[1]}

        def inside(inner):
            return down(9, inner)

        cases = [
            ("plain IP", Ether(dst=OWN[1]) / ip, "ethertype"), ("multicast MPLS", patched(good, 12, b"\x88\x48"), "ethertype"),
            ("other label", down(9, ip, label=4), "mpls"), ("S=0", patched(good, 16, b"\x30"), "mpls"), ("TTL of the label is the tunnel's", down(9, ip, ttl=0), 0, delivered(9, ip)),
            ("not from the peer", down(9, ip, outer=IP(src="198.18.1.3", dst=CPE_IP[1])), "tunnel_address"),
            ("not to us", down(9, ip, outer=IP(src="198.18.1.2", dst="198.18.1.9")), "tunnel_address"),
            ("first fragment", down(9, ip, outer=IP(**outside, flags="MF")), "fragment"), ("later fragment", down(9, ip, outer=IP(**outside, frag=1)), "fragment"),
            ("UDP", Ether(dst=OWN[1]) / MPLS(label=3, s=1) / IP(**outside) / UDP(), "protocol"),
            ("no key", patched(good, gre, b"\x00\x00"), "gre"), ("checksum present", patched(good, gre, b"\xa0\x00"), "gre"),
            ("sequence present", patched(good, gre, b"\x30\x00"), "gre"), ("GRE version 1", patched(good, gre, b"\x20\x01"), "gre"),
            ("MPLS in GRE", patched(good, gre + 2, b"\x88\x47"), "gre"), ("Ethernet in GRE", patched(good, gre + 2, b"\x65\x58"), "gre"),
            ("user of the other port", down(32768, ip), "unknown_user"), ("user ffffffff", down(0xffffffff, ip), "unknown_user"),
            ("outer checksum", patched(good, LABELLED + 8, b"\x09"), "checksum"), ("inner checksum", patched(good, gre + 16, b"\x09"), "checksum"),
            ("inner TTL 1", inside(udp(ttl=1)), "ttl"), ("inner address", inside(IP(bytes(IP(src="127.0.0.1", dst="203.0.113.9")))), "address"),
            ("inner longer than outer", patched(good, gre + 8 + 2, b"\x00\x30"), "length"), ("and in the trailer", bytes(inside(udp(b"xyz", len=35))) + b"more", "length"),
            ("inner version 6", patched(good, gre + 8, b"\x65"), "ip_header"),
            ("too big for the CPE", inside(udp(b"z" * (1500 - 28 + 1))), "too_big"),
            ("outer ends in GRE", Ether(dst=OWN[1]) / MPLS(label=3, s=1) / IP(**outside, proto=47) / Raw(b"\x20\x00\x08\x00"), "short"),
        ]
        cases += [("cut to %d" % n, cut(good, n), "short" if n < LABELLED + 20 else "length") for n in range(1, len(good))]
        self.check(OPTIONS, 2, [(name, 1, frame, *want) for name, frame, *want in cases])

    def test_mutated_frames(self):
        good = [down(9, udp(b"xyz")), down(300, udp(b"abc"), outer=IP(src="198.18.1.2", dst=CPE_IP[1], options=[IPOption(b"\x94\x04\x00\x00")]))]
        ask = cpe(1, 1, ARP(hwsrc=SENDER, psrc="100.64.1.2", pdst=CPE_IP[0]))
        up = list(harness.mutations(random.Random(6), [cpe(1, 1, udp(b"xyz")), ask], 2000))
        result = self.run_vnf(OPTIONS, [up, list(harness.mutations(random.Random(7), good, 2000))])
        self.assertGreater(len(result.end["drops"]), 8)
        self.assertGreater(result.end["sent"], 0)


if __name__ == "__main__":
    harness.main()
