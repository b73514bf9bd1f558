/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames on interfaces, in a network namespace of their own:
 *
 *   draygen send or ping, ga ===veth=== gb, draygen sink
 */
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support.h"

/* In the network namespace of this test, which takes it along. */
static void make_link(void)
{
	int status = system("ip link add ga type veth peer name gb && ip link set ga up && ip link set gb up");

	if (status != 0)
		test_skip("no veth pair can be made: it takes the program ip (Debian: iproute2)");
}

/* The ring has room for all of them, however late the sink is. */
static void one_way(void)
{
	struct child sink = START("sink", "--port", "packet:gb", "--once", "--check", "--stream", "1", "--strict", "--buffer", "16M"), sender;
	char *r;

	sender = START("send", "--port", "packet:ga", "--to", "192.0.2.2:5010", "--packets", "5000", "--rate", "20kpps", "--size", "imix", "--check", "--flows", "8",
		       "--catch-up", "60s", "--strict");
	r = child_result(&sender, 0);
	CHECK_EQ(json_number(r, "sent"), 5000);
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "expected"), 5000);
	CHECK_EQ(json_number(r, "received"), 5000);
	CHECK_EQ(json_number(r, "socket_drops"), 0);
	free(r);
}

/* What a small ring did not take while the sink was stopped is counted, and told from what the link lost. */
static void overflow(void)
{
	struct child sink = START("sink", "--port", "packet:gb", "--once", "--buffer", "4096"), sender;
	char *r;

	kill(sink.pid, SIGSTOP);
	sender = START("send", "--port", "packet:ga", "--to", "192.0.2.2:5010", "--packets", "1000", "--rate", "max");
	free(child_result(&sender, 0));
	kill(sink.pid, SIGCONT);
	/* The first end packets were dropped as well. */
	sender = START("send", "--port", "packet:ga", "--to", "192.0.2.2:5010", "--packets", "1");
	free(child_result(&sender, 0));
	r = child_result(&sink, 0);
	CHECK(json_number(r, "socket_drops") > 500 && json_number(r, "socket_drops") <= 1008);
	free(r);
}

static int listen_in(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));

	CHECK(fd >= 0);
	return fd;
}

/* Whether a frame from one UDP port to another has come by. */
static bool heard(int fd, unsigned from, unsigned to)
{
	uint8_t f[256];

	while (recv(fd, f, sizeof(f), MSG_DONTWAIT) > 42)
		if ((unsigned)(f[34] << 8 | f[35]) == from && (unsigned)(f[36] << 8 | f[37]) == to)
			return true;
	return false;
}

static void round_trips(void)
{
	struct child sink = START("sink", "--port", "packet:gb", "--reflect"), ping;
	int ear = listen_in();
	char *r;

	ping = START("ping", "--port", "packet:ga", "--to", "192.0.2.2:6000", "--packets", "300", "--rate", "max", "--closed", "--timeout", "10s");
	r = child_result(&ping, 0);
	CHECK_EQ(json_number(r, "received"), 300);
	CHECK_EQ(json_number(r, "duplicates"), 0);
	free(r);
	CHECK(heard(ear, 5010, 6000) && heard(ear, 6000, 5010)); /* turned: to whom it came from */
	close(ear);
	kill(sink.pid, SIGTERM);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), 300);
	free(r);
}

int main(int argc, char **argv)
{
	test_program(argc, argv);
	test_pin();
	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		test_skip("no network namespace can be made: be root, or allow user namespaces");
	make_link();
	one_way();
	overflow();
	round_trips();
	return 0;
}
