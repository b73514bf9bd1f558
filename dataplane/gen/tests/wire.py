#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Frames in encapsulations, as draygen-dpdk writes them to a file: held against what scapy builds, and checked by tshark."""
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../common"))
import tshark

try:
    from scapy.all import IP, UDP, Dot1AD, Dot1Q, Ether, Raw, rdpcap, wrpcap
    from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
    from scapy.contrib.mpls import MPLS
    from scapy.layers.l2 import GRE
except ImportError:
    print("scapy is missing (Debian: python3-scapy)")
    sys.exit(77)

PROGRAM = None
TO, FROM = "203.0.113.9", "10.60.0.1"
CPU = min(os.sched_getaffinity(0))
FLOWS, PACKETS = 3, 6


def outer(source, destination):
    return IP(src=source, dst=destination, id=0, flags="DF", ttl=64)


class Wire(unittest.TestCase):
    def setUp(self):
        home = tempfile.TemporaryDirectory(prefix="draygen-wire-")
        self.addCleanup(home.cleanup)
        self.file, self.nothing = os.path.join(home.name, "out.pcap"), os.path.join(home.name, "in.pcap")
        wrpcap(self.nothing, [], linktype=1)

    def sent(self, *options):
        eal = "--no-huge --no-shconf -m 64 --no-pci --no-telemetry --log-level error --lcores 0@%d --vdev net_pcap0,rx_pcap=%s,tx_pcap=%s" % (
            CPU, self.nothing, self.file)
        subprocess.run([PROGRAM, "send", "--port", "dpdk:net_pcap0", "--eal", eal, "--to", TO + ":6000", "--from", FROM, "--to-mac", "02:00:00:00:00:02",
                        "--flows", str(FLOWS), "--packets", str(PACKETS), "--catch-up", "60s", "--strict", *options], check=True, stdout=subprocess.DEVNULL, timeout=60)
        return [bytes(p) for p in rdpcap(self.file)]

    def check(self, options, size, build):
        """`build` makes the frame of a flow around its packet."""
        frames = self.sent(*options, "--size", str(size))
        self.assertEqual(len(frames), PACKETS + 8)  # and eight that say that it is the end
        for i, frame in enumerate(frames[:PACKETS]):
            flow = i % FLOWS
            spread = options[options.index("--spread") + 1] if "--spread" in options else ""
            source = "10.60.0.%d" % (1 + flow) if spread == "from" else FROM
            target = "203.0.113.%d" % (9 + flow) if spread == "to" else TO
            head = build(flow, IP(src=source, dst=target, id=0, flags="DF", ttl=64) / UDP(sport=5010 + flow, dport=6000, chksum=0) / Raw(frame[-18:]))
            self.assertEqual(len(frame), size)
            self.assertEqual(frame.hex(), bytes(Ether(src="02:70:63:61:70:00", dst="02:00:00:00:00:02") / head).hex())
        tshark.check(self, self.file)

    def test_users_without_an_encapsulation(self):
        self.check(["--spread", "to"], 60, lambda flow, packet: packet)

    def test_two_tags(self):
        self.check(["--encap", "qinq:s=128,c=7", "--spread", "from"], 68,
                   lambda flow, packet: Dot1AD(vlan=128, type=0x8100) / Dot1Q(vlan=7 + flow, type=0x0800) / packet)

    def test_gre_under_a_label(self):
        self.check(["--encap", "gre-mpls:label=3,key=70000,from=198.18.1.2,to=198.18.1.1"], 92,
                   lambda flow, packet: MPLS(label=3, s=1, ttl=255) / outer("198.18.1.2", "198.18.1.1") / GRE(key_present=1, key=70000 + flow) / packet)

    def gtpu(self, flow, packet, container):
        more = len(container) if container else 0
        header = GTP_U_Header(teid=9 + flow, gtp_type=255, E=1 if container else 0, next_ex=0x85 if container else None,
                              length=len(packet) + (4 + more if container else 0))
        head = bytes(header)
        # scapy's own idea of what follows the header is left out.
        head = head[:12] if container else head[:8]
        return outer("198.18.0.2", "198.18.0.1") / UDP(sport=2152, dport=2152, chksum=0) / Raw(head + (bytes(container) if container else b"") + bytes(packet))

    def test_gtpu(self):
        self.check(["--encap", "gtpu:teid=9,from=198.18.0.2,to=198.18.0.1"], 96, lambda flow, packet: self.gtpu(flow, packet, None))

    def test_gtpu_with_a_container(self):
        for direction, kind in (("up", 1), ("down", 0)):
            container = GTPPDUSessionContainer(ExtHdrLen=1, type=kind, QFI=9, NextExtHdr=0)
            self.check(["--encap", "gtpu:teid=9,from=198.18.0.2,to=198.18.0.1,pdu=%s,qfi=9" % direction, "--spread", "from"], 104,
                       lambda flow, packet: self.gtpu(flow, packet, container))

    def tunnelled(self, container, more):
        """Six packets of one flow in four tunnels: what is before each packet but Ethernet, and what tshark reads."""
        frames = self.sent("--flows", "1", "--encap", "gtpu:teid=4294967292,from=198.18.0.2,to=198.18.0.1,tunnels=4," + container, "--spread", "to",
                           "--size", str(78 + more + 56))[:PACKETS]
        for i, frame in enumerate(frames):
            user = i % 4
            packet = IP(src=FROM, dst="203.0.113.%d" % (9 + user), id=0, flags="DF", ttl=64) / UDP(sport=5010, dport=6000, chksum=0) / Raw(frame[-56:])
            length = len(packet) + more
            head = outer("198.18.0.2", "198.18.0.1") / UDP(sport=2152, dport=2152, chksum=0) / Raw(
                struct.pack(">BBHI", 0x34, 255, length, 4294967292 + user) + frame[50:50 + more] + bytes(packet))
            self.assertEqual(frame[14:].hex(), bytes(head).hex())
        tshark.check(self, self.file)
        return [frame[50:50 + more].hex() for frame in frames]

    def test_tunnels_of_n3(self):
        self.assertEqual(self.tunnelled("pdu=down,qfi=9", 8), ["00000085" + "01000900"] * PACKETS)

    def test_tunnels_of_f1u(self):
        """TS 38.425, 5.5.2.1, in TS 29.281's extension header, and TS 38.323, 6.2.2.3."""
        self.assertEqual(self.tunnelled("nru=dl", 15), ["00000084" + "02" + "0000" + "%06x" % (i // 4) + "00" + "00" + "80%04x" % (i // 4)
                                                       for i in range(PACKETS)])
        numbers = tshark.read(self.file, "-c", str(PACKETS), "-T", "fields", "-e", "gtp.teid", "-e", "nrup.pdu_type", "-e", "nrup.seq_num").split("\n")[:-1]
        self.assertEqual(numbers, ["0x%08x\t0\t%d" % (4294967292 + i % 4, i // 4) for i in range(PACKETS)])

    def fronthaul(self, profile, *options):
        """A profile's frames, and what tshark says of each: which message, of which time and sequence."""
        eal = "--no-huge --no-shconf -m 64 --no-pci --no-telemetry --log-level error --lcores 0@%d --vdev net_pcap0,rx_pcap=%s,tx_pcap=%s" % (
            CPU, self.nothing, self.file)
        subprocess.run([PROGRAM, "send", "--port", "dpdk:net_pcap0", "--eal", eal, "--fronthaul", profile, "--mtu", "9000", "--packets", "120",
                        "--catch-up", "60s", "--strict"], check=True, stdout=subprocess.DEVNULL, timeout=60)
        tshark.check(self, self.file, *options)
        fields = ["ecpri.type", "vlan.priority", "oran_fh_cus.ru_port_id", "oran_fh_cus.frameId", "oran_fh_cus.subframe_id", "oran_fh_cus.slotId",
                  "oran_fh_cus.startSymbolId", "oran_fh_cus.sequence_id", "oran_fh_cus.numPrbu", "oran_fh_cus.numPrbc", "oran_fh_cus.exponent"]
        rows = tshark.read(self.file, *options, "-T", "fields", "-E", "occurrence=a", *[x for f in fields for x in ("-e", f)]).split("\n")[:-1]
        return [bytes(p) for p in rdpcap(self.file)], [dict(zip(fields, row.split("\t"))) for row in rows]

    # BFP with 9 bits and without a header that says so is agreed on the M-plane.
    AGREED = ["-o", "oran_fh_cus.oran.iq_bitwidth_down:9", "-o", "oran_fh_cus.oran.show_iq_samples:FALSE"]

    def test_fronthaul(self):
        frames, rows = self.fronthaul("scs=30", *self.AGREED)
        self.assertEqual(len(rows), 120 + 8)
        self.assertEqual([len(f) for f in frames], [60 if r["ecpri.type"] == "0x02" else 7678 if r["ecpri.type"] == "0x00" else 98 for r in rows])
        self.assertEqual({r["ecpri.type"] for r in rows[120:]}, {"0x40"})  # a vendor's own: no radio unit takes the end for data
        self.assertEqual({r["vlan.priority"] for r in rows}, {"7"})
        self.assertEqual([r["oran_fh_cus.ru_port_id"] for r in rows[:120]], ["0", "1", "2", "3"] * 30)
        planes = {t: [r for r in rows if r["ecpri.type"] == t] for t in ("0x02", "0x00")}
        self.assertEqual([len(p) for p in planes.values()], [8, 112])
        self.assertEqual(rows[0]["ecpri.type"], "0x02")
        for type_, plane in planes.items():
            layer = plane[::4]
            times = [((int(r["oran_fh_cus.frameId"]) * 10 + int(r["oran_fh_cus.subframe_id"])) * 2 + int(r["oran_fh_cus.slotId"])) * 14
                     + int(r["oran_fh_cus.startSymbolId"]) for r in layer]
            step = 14 if type_ == "0x02" else 1
            self.assertEqual([(b - a) % (256 * 20 * 14) for a, b in zip(times, times[1:])], [step] * (len(times) - 1))
            numbers = [int(r["oran_fh_cus.sequence_id"]) for r in layer]
            self.assertEqual([(b - a) % 256 for a, b in zip(numbers, numbers[1:])], [1] * (len(numbers) - 1))
        self.assertEqual(planes["0x00"][0]["oran_fh_cus.exponent"].count(",") + 1, 273)

    def test_less_fronthaul(self):
        frames, rows = self.fronthaul("scs=15,prb=51,layers=1", *self.AGREED)
        self.assertEqual(sorted({len(f) for f in frames}), [60, 98, 1462])
        self.assertEqual({r["oran_fh_cus.numPrbu"] for r in rows if r["ecpri.type"] == "0x00"}, {"51"})
        # The check above would not pass whatever is sent: 9 bits are not 14.
        self.assertNotEqual(tshark.read(self.file, "-Y", tshark.BAD), "")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
