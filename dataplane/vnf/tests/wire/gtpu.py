#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gtpu: encapsulation and decapsulation on N3, as UPF and as gNB, with the PDU session container and without."""
import random

import harness
from harness import NEXT, OWN, SENDER, cut, hop, patched
from scapy.all import ARP, IP, UDP, Ether, IPOption, IPv6, Raw, raw
from scapy.contrib.gtp import GTPEchoRequest, GTPHeader, GTPPDUSessionContainer, GTP_U_Header, IE_Recovery

OPTIONS = ["gtpu", "--mtu", "0=1600"]
HERE, PEER, NET = "198.18.0.1", "198.18.0.2", "203.0.113.9"
FIRST, LAST = "10.60.0.1", "10.60.39.16"  # of 10,000
DOWN, UP = 0, 1
GTP = 14 + 20 + 8


def to_ue(dst=FIRST, payload=b"xyz", src=NET, **more):
    return IP(bytes(IP(src=src, dst=dst, **more) / UDP(sport=1, dport=2) / payload))


def from_ue(src=FIRST, payload=b"xyz", dst=NET, **more):
    return to_ue(dst, payload, src, **more)


def plain(ip):
    return Ether(dst=OWN[1], src=SENDER) / ip


def n3(gtp, src=PEER, dst=HERE, ether=None, udp=None, outer=None):
    return (ether or Ether(dst=OWN[0], src=SENDER)) / (outer or IP(src=src, dst=dst)) / (udp or UDP(sport=2152, dport=2152, chksum=0)) / gtp


def container(kind, qfi=9, after=0):
    return GTPPDUSessionContainer(type=kind, QFI=qfi, NextExtHdr=after)


def pdu(teid, ip, kind, qfi=9, **more):
    return GTP_U_Header(teid=teid, E=1, next_ex=0x85, gtp_type=255, **more) / container(kind, qfi) / IP(bytes(ip))


def sent(teid, ip, kind, qfi=9, dst=PEER):
    """What the function sends over N3."""
    return n3(pdu(teid, ip, kind, qfi), HERE, dst, Ether(dst=NEXT[0], src=OWN[0]), outer=IP(src=HERE, dst=dst, id=0, flags="DF", tos=ip.tos))


def delivered(ip):
    return Ether(dst=NEXT[1], src=OWN[1]) / IP(bytes(ip))


def with_extensions(ip, *extensions, teid=1):
    """A G-PDU with extension headers (type, octets of content), in that order, all lengths right."""
    chain = b""
    for i, (_, content) in enumerate(extensions):
        after = extensions[i + 1][0] if i + 1 < len(extensions) else 0
        chain += bytes([(len(content) + 2) // 4]) + content + bytes([after])
    rest = b"\0\0\0" + bytes([extensions[0][0]]) + chain + raw(ip)
    return n3(Raw(b"\x34\xff" + len(rest).to_bytes(2, "big") + teid.to_bytes(4, "big") + rest))


class Gtpu(harness.Case):
    def test_upf_sends_down_and_takes_up(self):
        cases = []
        for teid, ue in ((1, FIRST), (10000, LAST), (4711, "10.60.18.103")):
            cases += [("to " + ue, 1, plain(to_ue(ue)), 0, sent(teid, hop(to_ue(ue)), DOWN)),
                      ("from " + ue, 0, n3(pdu(teid, from_ue(ue), UP)), 1, delivered(hop(from_ue(ue))))]
        cases += [("no tunnel", 1, plain(to_ue("10.60.39.17")), "unknown_user"), ("no tunnel before", 1, plain(to_ue("10.60.0.0")), "unknown_user")]
        result = self.check(OPTIONS, 2, cases)
        fields = ["gtp.teid", "gtp.ext_hdr.pdu_ses_con.pdu_type", "gtp.ext_hdr.pdu_ses_con.qos_flow_id", "ip.ttl", "udp.checksum", "ip.len"]
        seen = self.tshark(result.files[0], fields)
        self.assertEqual(seen[0], ["0x00000001", "0", "9", "64,63", "0x0000,%s" % seen[0][4].split(",")[1], "75,31"])
        self.assertEqual([row[0] for row in seen], ["0x00000001", "0x00002710", "0x00001267"])

    def test_overhead_is_that_of_the_format(self):
        ip = to_ue()
        for options, overhead in (([], 44), (["--plain"], 36)):
            out = self.run_vnf([*OPTIONS, *options], [[], [plain(ip)]]).out[0][0]
            self.assertEqual(len(out), 14 + len(ip) + overhead)

    def test_gnb_sends_up_and_takes_down(self):
        # It hands over what the tunnel brings, and is no hop.
        last = to_ue(ttl=1)
        self.check([*OPTIONS, "--role", "gnb"], 2, [
            ("up", 1, plain(from_ue(LAST, ttl=1)), 0, sent(10000, from_ue(LAST, ttl=1), UP)), ("down", 0, n3(pdu(1, last, DOWN)), 1, delivered(last)),
            ("UP where DOWN is due", 0, n3(pdu(1, last, UP)), "gtp_extension"), ("for another UE", 0, n3(pdu(2, last, DOWN)), "foreign_source"),
            ("of no UE here", 1, plain(from_ue("10.61.0.1")), "unknown_user")])

    def test_one_end_takes_what_the_other_sends(self):
        ips = [to_ue("10.60.0.%d" % i, b"p" * i) for i in range(1, 100)]
        upf = self.run_vnf([*OPTIONS, "--ip", "0=198.18.0.1", "--peer", "0=198.18.0.2"], [[], [plain(ip) for ip in ips]])
        gnb = self.run_vnf([*OPTIONS, "--role", "gnb", "--ip", "0=198.18.0.2", "--peer", "0=198.18.0.1"], [upf.out[0], []])
        self.assertEqual(gnb.out[1], [bytes(delivered(hop(ip))) for ip in ips])

    def test_plain(self):
        ip = from_ue()
        bare = GTP_U_Header(teid=1, gtp_type=255) / ip
        self.check([*OPTIONS, "--plain"], 2, [
            ("up", 0, n3(bare), 1, delivered(hop(ip))), ("with a container", 0, n3(pdu(1, ip, UP)), 1, delivered(hop(ip))),
            ("down", 1, plain(to_ue()), 0, n3(GTP_U_Header(teid=1, gtp_type=255) / hop(to_ue()), HERE, PEER, Ether(dst=NEXT[0], src=OWN[0]),
                                              outer=IP(src=HERE, dst=PEER, id=0, flags="DF")))])

    def test_sessions_from_a_file(self):
        with open(self.path("sessions"), "w") as file:
            file.write("# UE here there peer QFI\n10.9.0.1 0xdeadbeef 77 198.51.100.7 5\n10.9.0.2 0 4294967295 198.51.100.8 63  # last\n")
        cases = []
        for ue, here, there, peer, qfi in (("10.9.0.1", 0xdeadbeef, 77, "198.51.100.7", 5), ("10.9.0.2", 0, 0xffffffff, "198.51.100.8", 63)):
            cases += [("to " + ue, 1, plain(to_ue(ue)), 0, sent(there, hop(to_ue(ue)), DOWN, qfi, peer)),
                      ("from " + ue, 0, n3(pdu(here, from_ue(ue), UP, qfi)), 1, delivered(hop(from_ue(ue)))),
                      ("of another flow", 0, n3(pdu(here, from_ue(ue), UP, qfi ^ 1)), "qfi")]
        self.check([*OPTIONS, "--sessions", self.path("sessions")], 2, cases)

    def test_optional_fields_and_extensions(self):
        ip, up = from_ue(), b"\x10\x09"
        good = {
            "sequence number": n3(GTP_U_Header(teid=1, E=1, S=1, seq=9, next_ex=0x85, gtp_type=255) / container(UP) / ip),
            "service class before, which need not be known": with_extensions(ip, (0x20, b"\1\2"), (0x85, up)),
            "UDP port behind": with_extensions(ip, (0x85, up), (0x40, b"\1\2")),
            "long container": with_extensions(ip, (0x85, up + b"\0" * 12)),
            "outer options": n3(pdu(1, ip, UP), outer=IP(src=PEER, dst=HERE, options=[IPOption(b"\x94\x04\x00\x00")])),
            "two extensions of 44 octets": with_extensions(ip, (0x20, b"\0" * 42), (0x20, b"\0" * 42), (0x85, up)),
            "UDP checksum": n3(pdu(1, ip, UP), udp=UDP(sport=40000, dport=2152)),
            "any source port": n3(pdu(1, ip, UP), udp=UDP(sport=40000, dport=2152, chksum=0)),
            "padding": bytes(n3(pdu(1, ip, UP))) + b"trailer",
        }
        big = from_ue(payload=random.Random(8).randbytes(1401))  # the checksum goes on beyond what is copied, and ends in an odd byte
        cases = [(name, 0, frame, 1, delivered(hop(ip))) for name, frame in good.items()]
        cases.append(("UDP checksum of much", 0, n3(pdu(1, big, UP), udp=UDP(sport=2152, dport=2152)), 1, delivered(hop(big))))
        wrong = bytes(n3(pdu(1, big, UP), udp=UDP(sport=2152, dport=2152)))
        cases.append(("and a wrong one", 0, wrong[:-1] + bytes([wrong[-1] ^ 1]), "checksum"))
        self.check(OPTIONS, 2, cases)

    def test_echo_is_answered(self):
        ask = n3(GTPHeader(gtp_type=1, S=1, seq=0xbeef, teid=0) / GTPEchoRequest(), udp=UDP(sport=33333, dport=2152))
        answer = Ether(dst=SENDER, src=OWN[0]) / IP(src=HERE, dst=PEER, id=0, flags="DF") / UDP(sport=2152, dport=33333, chksum=0) / Raw(
            b"\x32\x02\x00\x06\0\0\0\0\xbe\xef\0\0\x0e\0")
        bare = n3(Raw(b"\x30\x01\0\0\0\0\0\0"))  # shorter than the answer
        bare_answer = Ether(dst=SENDER, src=OWN[0]) / IP(src=HERE, dst=PEER, id=0, flags="DF") / UDP(sport=2152, dport=2152, chksum=0) / Raw(
            b"\x32\x02\x00\x06\0\0\0\0\0\0\0\0\x0e\0")
        result = self.check(OPTIONS, 2, [("echo", 0, ask, 0, answer), ("bare", 0, bare, 0, bare_answer)])
        self.assertEqual(result.end["echo_replies"], 2)
        self.assertEqual(self.tshark(result.files[0], ["gtp.message", "gtp.recovery", "gtp.seq_number"])[0], ["0x02", "0", "0xbeef"])
        self.assertEqual(IE_Recovery(answer[Raw].load[12:]).ietype, 14)

    def test_arp_at_both_ports(self):
        def ask(port):
            return Ether(dst="ff:ff:ff:ff:ff:ff", src=SENDER) / ARP(hwsrc=SENDER, psrc="198.18.%d.2" % port, pdst="198.18.%d.1" % port)

        cases = [("port %d" % port, port, ask(port), port,
                  Ether(dst=SENDER, src=OWN[port]) / ARP(op=2, hwsrc=OWN[port], psrc="198.18.%d.1" % port, hwdst=SENDER, pdst="198.18.%d.2" % port))
                 for port in (0, 1)]
        self.check(OPTIONS, 2, cases)

    def test_congestion_marks(self):
        ip = from_ue(tos=0x28 | 2)
        marked = IP(bytes(ip))
        marked.tos = 0x28 | 3
        del marked.chksum
        self.check(OPTIONS, 2, [
            ("CE over ECT", 0, n3(pdu(1, ip, UP), outer=IP(src=PEER, dst=HERE, tos=3)), 1, delivered(hop(IP(bytes(marked))))),
            ("CE over none", 0, n3(pdu(1, from_ue(), UP), outer=IP(src=PEER, dst=HERE, tos=3)), "ecn"),
            ("down", 1, plain(to_ue(tos=0xba)), 0, sent(1, hop(to_ue(tos=0xba)), DOWN))])

    def test_what_is_dropped_of_n3(self):
        ip, up = from_ue(), b"\x10\x09"
        options = IP(bytes(IP(src=FIRST, dst=NET, options=[IPOption(b"\x44\x28\x05\x00" + bytes(36))]) / UDP()))
        good = bytes(n3(pdu(1, ip, UP)))

        def outer(**fields):
            return n3(pdu(1, ip, UP), outer=IP(**{"src": PEER, "dst": HERE, **fields}))

        def udp(**fields):
            return n3(pdu(1, ip, UP), udp=UDP(**{"sport": 2152, "dport": 2152, "chksum": 0, **fields}))

        cases = [
            ("IPv6", Ether() / IPv6() / UDP(dport=2152), "ethertype"), ("to somebody else", outer(dst="198.18.0.9"), "tunnel_address"),
            ("from a group", outer(src="224.0.0.1"), "address"),
            ("first fragment", outer(flags="MF"), "fragment"), ("later fragment", outer(frag=3), "fragment"), ("TCP", outer(proto=6), "protocol"),
            ("other port", udp(dport=2123), "protocol"), ("UDP length 7", udp(len=7), "length"), ("UDP longer than IP", udp(len=1000), "length"), ("by one byte", udp(len=8 + 16 + 31 + 1), "length"),
            ("UDP without a header's room", Ether(dst=OWN[0]) / IP(src=PEER, dst=HERE, proto=17) / Raw(b"1234567"), "short"),
            ("UDP of no payload", n3(Raw(b"")), "short"), ("wrong UDP checksum", udp(chksum=0x1234), "checksum"),
            ("GTP version 2", patched(good, GTP, b"\x54"), "gtp_header"), ("GTP version 0", patched(good, GTP, b"\x14"), "gtp_header"), ("GTP'", patched(good, GTP, b"\x24"), "gtp_header"),
            ("echo response", patched(good, GTP + 1, b"\x02"), "gtp_message"), ("error indication", patched(good, GTP + 1, b"\x1a"), "gtp_message"),
            ("end marker", patched(good, GTP + 1, b"\xfe"), "gtp_message"), ("GTP longer than UDP", patched(good, GTP + 2, b"\xff\xff"), "length"),
            ("by one byte", patched(good, GTP + 2, b"\0\x28"), "length"),
            ("GTP of length 0", patched(good, GTP + 2, b"\0\0"), "short"), ("GTP that ends in the inner header", patched(good, GTP + 2, b"\0\x1b"), "short"),
            ("TEID 0", n3(pdu(0, ip, UP)), "unknown_user"), ("TEID 10001", n3(pdu(10001, ip, UP)), "unknown_user"), ("TEID ffffffff", n3(pdu(0xffffffff, ip, UP)), "unknown_user"),
            ("no container", n3(GTP_U_Header(teid=1, gtp_type=255) / ip), "gtp_extension"), ("container of the other direction", n3(pdu(1, ip, DOWN)), "gtp_extension"),
            ("two containers", with_extensions(ip, (0x85, up), (0x85, up)), "gtp_extension"), ("extension that must be known", with_extensions(ip, (0x85, up), (0xc0, b"12")), "gtp_extension"),
            ("extension of length 0", patched(good, GTP + 12, b"\0"), "gtp_extension"), ("extension beyond the end", patched(good, GTP + 12, b"\xff"), "gtp_extension"),
            ("chain without end", patched(good, GTP + 15, b"\x20"), "gtp_extension"), ("chain longer than is looked at", with_extensions(ip, *[(0x20, b"\0" * 42)] * 4, (0x85, up)), "headers_too_long"),
            ("inner options beyond what is looked at", with_extensions(options, (0x20, b"\0" * 42), (0x20, b"\0" * 42), (0x85, up)), "headers_too_long"),
            ("other flow", n3(pdu(1, ip, UP, 8)), "qfi"), ("of another UE", n3(pdu(2, ip, UP)), "foreign_source"),
            ("IPv6 inside", patched(good, GTP + 16, b"\x60"), "ip_header"), ("inner TTL 1", n3(pdu(1, from_ue(ttl=1), UP)), "ttl"), ("inner checksum", patched(good, GTP + 16 + 8, b"\x05"), "checksum"),
            ("inner longer than outer", patched(good, GTP + 16 + 2, b"\x01\x00"), "length"), ("to loopback", n3(pdu(1, from_ue(dst="127.0.0.1"), UP)), "address"),
        ]
        cases += [("cut to %d" % n, cut(good, n), "short" if n < 34 else "length") for n in range(1, len(good))]
        self.check(OPTIONS, 2, [(name, 0, frame, *want) for name, frame, *want in cases])

    def test_what_is_dropped_of_plain_packets(self):
        good = bytes(plain(to_ue()))
        room = 1600 - 44 - 28
        cases = [("TTL 1", plain(to_ue(ttl=1)), "ttl"), ("checksum", patched(good, 22, b"\x11"), "checksum"), ("from loopback", plain(to_ue(src="127.0.0.1")), "address"),
                 ("IPv6", Ether() / IPv6(), "ethertype"), ("too big", plain(to_ue(payload=b"z" * (room + 1))), "too_big"),
                 ("just fits", plain(to_ue(payload=b"z" * room)), 0, sent(1, hop(to_ue(payload=b"z" * room)), DOWN))]
        cases += [("cut to %d" % n, cut(good, n), "short" if n < 34 else "length") for n in range(1, len(good))]
        self.check(OPTIONS, 2, [(name, 1, frame, *want) for name, frame, *want in cases])

    def test_mutated_frames(self):
        n3_frames = [n3(pdu(1, from_ue(), UP)), with_extensions(from_ue(), (0x20, b"\1\2"), (0x85, b"\x10\x09")),
                     n3(GTPHeader(gtp_type=1, S=1, seq=1, teid=0) / GTPEchoRequest())]
        result = self.run_vnf(OPTIONS, [list(harness.mutations(random.Random(9), n3_frames, 2500)), list(harness.mutations(random.Random(10), [plain(to_ue())], 1500))])
        self.assertGreater(len(result.end["drops"]), 8)
        self.assertGreater(result.end["sent"], 0)


if __name__ == "__main__":
    harness.main()
