#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""lb: frames go to one of the workers and come back as they are, whatever they are; a worker that is killed takes only its own flows with it."""
import contextlib
import random

import balanced
import harness
from balanced import FLOWS, PATIENCE, TO, both, ether, up
from harness import SENDER, lcores_on, mutations
from scapy.all import ARP, ICMP, IP, SCTP, TCP, UDP, Dot1AD, Dot1Q, Ether, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, Raw, fragment, fragment6
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer


def in_gtpu(packet, teid, up=True):
    ends = ("198.18.0.2", "198.18.0.1") if up else ("198.18.0.1", "198.18.0.2")
    return ether() / IP(src=ends[0], dst=ends[1]) / UDP(sport=2152, dport=2152) / GTP_U_Header(teid=teid, gtp_type=255) / \
        GTPPDUSessionContainer(type=1 if up else 0, QFI=9, ExtHdrLen=1) / packet[IP]


class LB(balanced.Case):
    def balance(self, frames, workers=3, **how):
        """Which worker each frame goes to; all must arrive as they are."""
        result = self.run_vnf(["lb"], [frames] + [[]] * workers, **how)
        self.assertEqual(result.out[0], [])
        self.assertEqual(result.end["drops"], {})
        where = {g: port for port, got in enumerate(result.out) for g in got}
        for port, got in enumerate(result.out):
            self.assertEqual(got, [bytes(f) for f in frames if where.get(bytes(f)) == port], "worker %d has other frames, or in another order" % port)
        self.assertEqual(result.end["workers"], [{"port": port, "up": True, "leaving": False, "not_taken": 0} for port in range(1, workers + 1)])
        self.assertEqual(result.end["rebalances"], 0)
        return [where[bytes(f)] for f in frames]

    def test_both_directions_meet(self):
        pairs = [both(5010 + i, l4) for l4 in (TCP, UDP, SCTP) for i in range(FLOWS)]
        at = self.balance([f for pair in pairs for f in pair])
        self.assertEqual(at[0::2], at[1::2])
        for which in range(3):
            self.assertEqual(set(at[which * 2 * FLOWS:][:2 * FLOWS]), {1, 2, 3})

    def test_ip6(self):
        def frame(i, back, *between):
            ends = ("2001:db8::1", "2001:db8::2")
            ip = IPv6(src=ends[back], dst=ends[1 - back])
            for header in between:
                ip /= header
            return ether() / ip / UDP(sport=5010 + i if not back else 53, dport=53 if not back else 5010 + i)
        at = self.balance([frame(i, back, *between) for between in ((), (IPv6ExtHdrDestOpt(),)) for i in range(FLOWS) for back in (0, 1)])
        self.assertEqual(at[0::2], at[1::2])
        self.assertEqual(set(at), {1, 2, 3})
        self.assertEqual(at[:2 * FLOWS], at[2 * FLOWS:])

    def test_tags_change_nothing(self):
        plain = [both(5010 + i)[0] for i in range(FLOWS)]
        tagged = [ether() / Dot1AD(vlan=7, type=0x8100) / Dot1Q(vlan=i % 5) / f[IP] for i, f in enumerate(plain)]
        at = self.balance(plain + tagged)
        self.assertEqual(at[:FLOWS], at[FLOWS:])

    def test_users_of_gtpu_are_flows(self):
        # On N3 the outer addresses and ports are those of all users; what leaves the tunnel is at the same worker.
        pairs = [both(5010 + i) for i in range(FLOWS)]
        at = self.balance([there for there, _ in pairs] + [in_gtpu(there, 1 + i) for i, (there, _) in enumerate(pairs)] +
                          [in_gtpu(back, 1000 + i, up=False) for i, (_, back) in enumerate(pairs)])
        self.assertEqual(at[:FLOWS], at[FLOWS:2 * FLOWS])
        self.assertEqual(at[:FLOWS], at[2 * FLOWS:])
        self.assertEqual(set(at), {1, 2, 3})

    def test_fragments_meet(self):
        datagrams = []
        for i in range(8):
            ip = IP(src="192.0.2.%d" % (1 + i), dst="198.51.100.1") / UDP(sport=5010, dport=53) / Raw(random.Random(i).randbytes(1200))
            datagrams.append([ether() / f for f in fragment(ip, 400)])
            ip = IPv6(src="2001:db8::%d" % (1 + i), dst="2001:db8::9") / IPv6ExtHdrFragment(id=7) / UDP(sport=5010) / Raw(random.Random(i).randbytes(3000))
            datagrams.append([ether() / f for f in fragment6(ip, 1280)])
        at = iter(self.balance([f for fragments in datagrams for f in fragments]))
        for fragments in datagrams:
            self.assertGreater(len(fragments), 2)
            self.assertEqual(len({next(at) for _ in fragments}), 1)

    def test_what_is_no_flow_passes_as_well(self):
        ping = [ether() / IP(src="192.0.2.1", dst="198.51.100.1") / ICMP(type=8, id=3), ether() / IP(src="198.51.100.1", dst="192.0.2.1") / ICMP(type=0, id=3)]
        arp = [Ether(dst=TO, src=SENDER) / ARP(op=1, pdst="192.0.2.1"), Ether(dst=SENDER, src=TO) / ARP(op=2, psrc="192.0.2.1")]
        at = self.balance(ping + arp + [ether(type=0x9999) / Raw(random.Random(n).randbytes(n)) for n in (0, 1, 60, 1500)])
        self.assertEqual((at[0], at[2]), (at[1], at[3]))

    def test_mutated_frames_pass_unchanged(self):
        shapes = random.Random(17)
        good = [both(5010)[0], in_gtpu(both(5011)[0], 9), ether() / IPv6(dst="2001:db8::1") / IPv6ExtHdrDestOpt() / TCP(),
                ether() / Dot1AD(vlan=1, type=0x8100) / Dot1Q(vlan=2) / IP() / SCTP()]
        self.balance([f for f in mutations(shapes, good, 2000) if len(f) >= 14])

    def test_too_short_frames_are_dropped(self):
        self.check(["lb"], 2, [("cut to %d" % n, port, bytes(range(n)), "short") for n in range(1, 14) for port in (0, 1)])

    def test_workers_send_by_the_nic(self):
        frames = [both(5010 + i)[1] for i in range(3)]
        result = self.run_vnf(["lb"], [[], *[[f] for f in frames]])
        self.assertEqual(sorted(result.out[0]), sorted(bytes(f) for f in frames))

    def test_stages_keep_the_order_of_flows(self):
        frames = [ether() / IP(src="192.0.2.%d" % (1 + i % 9), dst="198.51.100.1") / UDP(sport=5010) / Raw(bytes([i])) for i in range(200)]
        result = self.run_vnf(["lb", "--stages"], [frames, [], []], lcores=lcores_on(4))
        self.assertEqual(len(result.out[1]) + len(result.out[2]), len(frames))
        for flow in range(9):
            sent = [bytes(f) for f in frames[flow::9]]
            self.assertIn([[f for f in out if f in sent] for out in result.out[1:]], ([sent, []], [[], sent]))

    def test_a_worker_is_killed_and_comes_back(self):
        sockets = self.sockets(2)
        with self.balancer(sockets) as lb, contextlib.ExitStack() as first:
            self.wait(lb, lambda end: end["drops"].get("no_worker", 0) > 0)  # nobody is there yet
            first.enter_context(self.worker(sockets[0], "l2fwd"))
            with self.worker(sockets[1], "l2fwd") as victim:
                both_up = self.wait(lb, lambda end: up(end) == [True, True])
                self.flowing(lb, both_up, 1, 2)
                victim.kill()
                victim.wait(PATIENCE)
                without = self.wait(lb, lambda end: up(end) == [True, False])
                lost = without["drops"]["no_worker"]
                after = self.flowing(lb, without, 1)
                self.assertEqual(after["drops"]["no_worker"], lost)
            with self.worker(sockets[1], "l2fwd"):
                again = self.wait(lb, lambda end: up(end) == [True, True])
                self.flowing(lb, again, 1, 2)
            self.assertGreaterEqual(again["rebalances"], 3)


if __name__ == "__main__":
    harness.main()
