# SPDX-License-Identifier: Apache-2.0
"""Run dray-vnf on files of packets. What is sent and what is expected is built by scapy, and looked at by tshark as well."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../common"))
import tshark

try:
    from scapy.all import IP, raw, rdpcap, wrpcap
except ImportError:
    print("scapy is missing (Debian: python3-scapy)")
    sys.exit(77)

PROGRAM = None
NEXT = ["02:00:00:00:00:00", "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"]
OWN = ["02:70:63:61:70:%02x" % port for port in range(4)]  # as net_pcap numbers its devices
SENDER = "02:aa:00:00:00:01"


CPUS = sorted(os.sched_getaffinity(0))


def lcores_on(n):
    """n threads over the CPUs that there are."""
    return ",".join("%d@%d" % (i, CPUS[i % len(CPUS)]) for i in range(n))


def eal(*more, lcores=lcores_on(1), memory=64):
    return [PROGRAM, "--no-huge", "--no-shconf", "-m", str(memory), "--no-pci", "--no-telemetry", "--lcores", lcores, "--log-level", "error", *more]


class Result:
    def __init__(self, process, files):
        self.lines = [json.loads(line) for line in process.stdout.splitlines()]
        self.end = self.lines[-1]
        self.files = files
        self.out = [[bytes(p) for p in rdpcap(f)] if os.path.getsize(f) > 24 else [] for f in files]


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.home = tempfile.TemporaryDirectory(prefix="dray-vnf-")
        self.addCleanup(self.home.cleanup)

    def path(self, name):
        return os.path.join(self.home.name, name)

    def vdevs(self, frames):
        """Files of packets for each port, and EAL's arguments for them."""
        arguments, out = [], []
        for port, packets in enumerate(frames):
            wrpcap(self.path("in%d" % port), [bytes(p) for p in packets], linktype=1)
            out.append(self.path("out%d" % port))
            arguments += ["--vdev", "net_pcap%d,rx_pcap=%s,tx_pcap=%s" % (port, self.path("in%d" % port), out[-1])]
        return arguments, out

    def run_vnf(self, options, frames, lcores=lcores_on(1), memory=64, before=()):
        """Send each port its frames, and wait until all were received. Nothing may get lost on the way."""
        vdevs, out = self.vdevs(frames)
        count = sum(len(packets) for packets in frames)
        command = [*before, *eal(*vdevs, lcores=lcores, memory=memory), "--", *options, "--packets", str(count)]
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(process.returncode, 0, process.stderr)
        result = Result(process, out)
        end = result.end
        self.assertEqual(end["received"], count)
        self.assertEqual(end["received"], end["sent"] + end["dropped"])
        self.assertEqual(end["dropped"], sum(end["drops"].values()))
        self.assertEqual(end["sent"], sum(len(packets) for packets in result.out))
        return result

    def check(self, options, ports, cases, **how):
        """Cases (name, port, frame, port and frame expected or the reason of its drop), in the order in which each port has them."""
        frames = [[c[2] for c in cases if c[1] == port] for port in range(ports)]
        want_out, want_drops = [[] for _ in range(ports)], {}
        for port in range(ports):
            for name, _, _, *expected in (c for c in cases if c[1] == port):
                if len(expected) == 1:
                    want_drops[expected[0]] = want_drops.get(expected[0], 0) + 1
                else:
                    want_out[expected[0]].append((name, bytes(expected[1])))
        result = self.run_vnf(options, frames, **how)
        for port in range(ports):
            got = list(result.out[port])
            for name, frame in want_out[port]:
                self.assertIn(frame, got, "%s: not among what left port %d:\n%s\nwanted\n%s" % (
                    name, port, "\n".join(g.hex() for g in got), frame.hex()))
                got.remove(frame)
            self.assertEqual([g.hex() for g in got], [], "left port %d, and nobody expected it" % port)
        self.assertEqual(result.end["drops"], want_drops)
        return result

    def tshark(self, file, fields, *more):
        """Fields as tshark reads them, one list a packet. A bad packet fails (common/tshark.py)."""
        tshark.check(self, file)
        arguments = [a for f in fields for a in ("-e", f)]
        text = tshark.read(file, *more, "-T", "fields", *arguments)
        return [line.split("\t") for line in text.splitlines()]


def hop(packet):
    """The same IPv4 packet, one hop on; scapy computes the checksum anew."""
    packet = IP(raw(packet))
    packet.ttl -= 1
    del packet.chksum
    return IP(raw(packet))


def patched(frame, at, value):
    """The frame with other bytes at an offset; where they are IPv4's, the checksum stays as it was."""
    frame = bytearray(bytes(frame))
    frame[at:at + len(value)] = value
    return bytes(frame)


def cut(frame, length):
    return bytes(frame)[:length]


def ends_of(frame):
    """The frame cut at each length: all of them lack something, down to nothing at all but one byte."""
    return [bytes(frame)[:n] for n in range(1, len(frame))]


def mutations(random, frames, count):
    """Good frames with bytes changed, cut, doubled, moved."""
    for _ in range(count):
        frame = bytearray(bytes(random.choice(frames)))
        for _ in range(random.randint(1, 4)):
            at = random.randrange(max(len(frame), 1))
            what = random.random()
            if what < 0.6 and frame:
                frame[at] = random.choice([0, 1, 0x7f, 0x80, 0xff, random.randrange(256)])
            elif what < 0.75 and at > 0:
                del frame[at:]
            elif what < 0.9:
                frame[at:at] = frame[:random.randrange(64)]
            else:
                del frame[at:at + random.randrange(8)]
        if frame:
            yield bytes(frame)


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    program = unittest.main(exit=False, verbosity=1)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped else 0)
