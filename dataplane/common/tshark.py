# SPDX-License-Identifier: Apache-2.0
"""What tshark thinks of the packets that a test wrote to a file."""
import subprocess

CHECKSUMS = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
# Of its remarks, "Note" and above: a chat tells what a packet is for.
BAD = "_ws.malformed or _ws.expert.severity >= 0x400000 or ip.checksum.status == 0 or udp.checksum.status == 0 or udp.length.bad or ip.bogus_ip_length"


def read(file, *options):
    """What tshark prints of a file."""
    return subprocess.run(["tshark", "-n", "-r", file, *CHECKSUMS, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                          timeout=60).stdout


def check(case, file, *options):
    """A packet that tshark warns about or calls malformed, or one with a wrong checksum or length, fails the test case."""
    try:
        bad = read(file, "-Y", BAD, *options)
    except FileNotFoundError:
        case.skipTest("tshark is missing (Debian: tshark)")
    case.assertEqual(bad, "")
