#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The program: stages, statistics, signals, privileges, and what it refuses."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

import harness
from harness import lcores_on
from scapy.all import IP, UDP, Dot1AD, Dot1Q, Ether, rdpcap, wrpcap

PATIENCE = 60  # s


def qinq(s, c):
    return Ether(dst="02:70:63:61:70:00") / Dot1AD(vlan=s, type=0x8100) / Dot1Q(vlan=c) / IP(src="100.64.0.1", dst="203.0.113.9") / UDP()


class Program(harness.Case):
    def start(self, options, frames, before=()):
        vdevs, _ = self.vdevs(frames)
        process = subprocess.Popen([*before, *harness.eal(*vdevs), "--", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def reap():
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
        self.addCleanup(reap)
        self.assertEqual(self.line(process)["event"], "ready")
        return process

    def line(self, process):
        return json.loads(process.stdout.readline())

    def finish(self, process, number):
        process.send_signal(number)
        lines = process.stdout.read().splitlines()
        self.assertEqual(process.wait(PATIENCE), 0)
        return json.loads(lines[-1])

    def test_signals(self):
        frame = bytes(range(60))
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.start(["l2fwd"], [[frame] * 5, [frame[:5]]])
            seen = None
            while not seen or seen["sent"] + seen["dropped"] < 6:  # soon; the test's own time-out ends it otherwise
                process.send_signal(signal.SIGUSR1)
                seen = self.line(process)
            self.assertEqual((seen["event"], seen["mode"], seen["sent"], seen["drops"]), ("signal", "l2fwd", 5, {"short": 1}))
            end = self.finish(process, number)
            self.assertEqual((end["event"], end["received"], end["sent"], end["dropped"]), ("end", 6, 5, 1))
            self.assertEqual(end["ports"], [{"received": 5, "sent": 0}, {"received": 1, "sent": 5}])
            self.assertGreater(end["cycles_per_packet"], 0)

    def test_work(self):
        frames = [bytes(60)] * 20
        fast = self.run_vnf(["l2fwd"], [frames, []]).end
        began = time.monotonic()
        slow = self.run_vnf(["l2fwd", "--work", "50ms"], [frames, []]).end
        self.assertEqual((fast["sent"], slow["sent"]), (20, 20))
        self.assertGreater(time.monotonic() - began, 20 * 0.05)

    def test_interval_and_duration(self):
        process = self.start(["none", "--interval", "50ms", "--duration", "3s"], [[bytes(60)], []])
        lines = [json.loads(line) for line in process.stdout]
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual({line["event"] for line in lines[:-1]}, {"interval"})
        self.assertEqual(lines[-1]["event"], "end")
        self.assertGreaterEqual(lines[-1]["seconds"], 3)

    def test_results_that_nobody_reads(self):
        process = self.start(["none", "--interval", "10ms", "--duration", "200ms"], [[], []])
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_stages_lose_and_double_nothing(self):
        # By users, over two workers; each worker keeps the order of its users.
        frames = [qinq(1 + i % 16, 1 + i % 7) for i in range(300)]
        alone = self.run_vnf(["bng", "--mtu", "1=1600"], [frames, []])
        for lcores in (2, 3, 4):
            result = self.run_vnf(["bng", "--stages", "--mtu", "1=1600"], [frames, []], lcores=lcores_on(lcores))
            self.assertEqual(result.lines[0]["lcores"], lcores)
            self.assertEqual(len(result.out[1]), len(frames), result.end)
            self.assertEqual(sorted(result.out[1]), sorted(alone.out[1]))
            for key in {f[42:46] for f in alone.out[1]}:
                self.assertEqual([f for f in result.out[1] if f[42:46] == key], [f for f in alone.out[1] if f[42:46] == key])

    def test_queues_are_one_core_each(self):
        vdevs, files = [], {}
        for port in (0, 1):
            for queue in (0, 1):
                files[port, queue] = self.path("out%d-%d" % (port, queue))
                wrpcap(self.path("in%d-%d" % (port, queue)), [bytes([16 * port + queue]) * 60] * (10 + queue), linktype=1)
            arguments = ["rx_pcap=%s,tx_pcap=%s" % (self.path("in%d-%d" % (port, queue)), files[port, queue]) for queue in (0, 1)]
            vdevs += ["--vdev", "net_pcap%d,%s" % (port, ",".join(arguments))]
        command = [*harness.eal(*vdevs, lcores=lcores_on(2)), "--", "l2fwd", "--queues", "2", "--packets", "42"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        end = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual((end["received"], end["sent"], end["ports"]), (42, 42, [{"received": 21, "sent": 21}] * 2))
        for (port, queue), name in files.items():
            self.assertEqual([bytes(f)[12:] for f in rdpcap(name)], [bytes([16 * (1 - port) + queue]) * 48] * (10 + queue))

    def test_stages_of_the_other_modes(self):
        frame = Ether(dst="02:70:63:61:70:00") / IP(src="192.0.2.1", dst="10.60.0.1") / UDP()
        for options in (["none"], ["l2fwd"], ["gtpu", "--mtu", "1600"], ["l3fwd", "--generate", "1", "--default-route", "0"]):
            result = self.run_vnf([*options, "--stages"], [[], [frame] * 100], lcores=lcores_on(3), memory=128)
            self.assertEqual(len(result.out[0]), 100, options)
            result = self.run_vnf([*options, "--stages", "--yield"], [[], [frame] * 100], lcores=lcores_on(3), memory=128)
            self.assertEqual(len(result.out[0]), 100, options)

    def test_no_capability_and_another_user(self):
        setpriv = shutil.which("setpriv")
        if os.getuid() != 0 or not setpriv:
            self.skipTest("only root with setpriv (Debian: util-linux) can drop privileges")
        os.chmod(self.home.name, 0o777)
        drop = [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
        if subprocess.run([*drop, harness.PROGRAM, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            drop = [setpriv, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]  # the program lies where only root may look
        process = self.start(["l2fwd"], [[bytes(60)], []], before=drop)
        with open("/proc/%d/status" % process.pid) as file:
            status = dict(line.rstrip("\n").split(":\t") for line in file if ":\t" in line)
        self.assertEqual([int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")], [0, 0, 0])
        self.assertEqual(status["NoNewPrivs"], "1")
        self.finish(process, signal.SIGTERM)

    def refuses(self, code, words, *arguments, eal=None):
        command = [harness.PROGRAM, *arguments] if eal is None else [*harness.eal(*eal), "--", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(words, done.stderr + done.stdout)

    def test_every_option_and_reason_is_documented(self):
        top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../..")
        with open(os.path.join(top, "docs/vnf.md")) as file:
            guide = file.read()
        with open(os.path.join(top, "dataplane/vnf/src/reason.h")) as file:
            reasons = re.findall(r'X\(DROP_\w+, "(\w+)"\)', file.read())
        with open(os.path.join(top, "dataplane/vnf/src/options.c")) as file:
            options = re.findall(r'\{"([a-z-]+)", (?:no|required)_argument', file.read())
        self.assertGreater(min(len(reasons), len(options)), 20)
        for reason in reasons:
            self.assertIn("\n| `%s` |" % reason, guide)
        for option in options:
            self.assertIn("`--%s" % option, guide)

    def test_usage(self):
        self.refuses(0, "usage:", "--help")
        self.refuses(0, "dray-vnf 0", "--version")
        self.refuses(2, "comes a mode")
        for words, *arguments in [
            ("none of none", "l4fwd"), ("is no option", "none", "--nonsense"), ("--label is not for l2fwd", "l2fwd", "--label", "3"),
            ("--packets: 0 is not possible", "none", "--packets", "0"), ("lacks its value", "none", "--packets"), ("not expected", "none", "more"),
            ("one of them", "l3fwd"), ("one of them", "l3fwd", "--routes", "x", "--generate", "5"), ("is for --generate", "l3fwd", "--routes", "x", "--seed", "5"),
            ("beyond VLAN 4094", "bng", "--svlans", "4000", "--svlan-base", "100"), ("leave out --queues", "none", "--stages", "--queues", "2"),
            ("leave out --tunnels", "gtpu", "--sessions", "x", "--qfi", "1"), ("which are odd", "bng", "--peer", "0=192.0.2.1"), ("is for port 0", "gtpu", "--peer", "1=192.0.2.1"),
            ("--qfi: 64", "gtpu", "--qfi", "64"), ("--role: amf", "gtpu", "--role", "amf"), ("--ip: 0=1.2.3", "gtpu", "--ip", "0=1.2.3"), ("--ip: 16=", "l3fwd", "--ip", "16=1.2.3.4"),
            ("--next-hop: 0=02:00", "l2fwd", "--next-hop", "0=02:00"), ("--duration: 5", "none", "--duration", "5"), ("beyond 223", "gtpu", "--ue", "223.255.255.255"),
        ]:
            self.refuses(2, words, "--", *arguments)

    def test_what_cannot_be(self):
        one, two = ["--vdev", "net_null0"], ["--vdev", "net_null0", "--vdev", "net_null1"]
        self.refuses(1, "there is no port", "none", eal=[])
        self.refuses(1, "in pairs", "bng", eal=one)
        self.refuses(1, "a port that is not there", "l2fwd", "--next-hop", "2=02:00:00:00:00:01", eal=two)
        self.refuses(1, "more than 1048576 users", "bng", "--svlans", "4094", eal=two * 2 + ["--vdev", "net_null2", "--vdev", "net_null3"])
        self.refuses(1, "2 queues take as many lcores", "none", "--queues", "2", eal=two)
        self.refuses(1, "needs 2 lcores", "none", "--stages", eal=two)
        self.refuses(1, "larger -m", "none", "--descriptors", "32768", eal=two)
        self.refuses(1, "larger -m", "l3fwd", "--generate", "300000", eal=two)
        self.refuses(1, "No such file", "l3fwd", "--routes", self.path("nowhere"), eal=two)
        for mode, option, text, words in [
            ("l3fwd", "--routes", "10.0.0.0/8 0\n10.0.0.1/8 1\n", "line 2: its prefix"), ("l3fwd", "--routes", "10.0.0.0/8\n", "line 1: after the prefix"),
            ("l3fwd", "--routes", "10.0.0.0/8 2\n", "line 1: after the prefix"), ("l3fwd", "--routes", "10.0.0.0/8 1 02:00\n", "line 1: after the port"),
            ("gtpu", "--sessions", "10.0.0.1 1 2 192.0.2.1\n", "line 1: it is not"), ("gtpu", "--sessions", "10.0.0.1 1 2 192.0.2.1 64\n", "line 1: it is not"),
            ("gtpu", "--sessions", "10.0.0.1 1 2 192.0.2.1 1\n10.0.0.2 1 2 192.0.2.1 1\n", "session 2 has a TEID"),
        ]:
            with open(self.path("file"), "w") as file:
                file.write(text)
            self.refuses(1, words, mode, option, self.path("file"), eal=two)


if __name__ == "__main__":
    harness.main()
