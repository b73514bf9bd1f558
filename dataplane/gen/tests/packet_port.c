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
	int status = system(
		"ip link add ga type veth peer name gb && ip link set ga up && ip link set gb up");

	if (status != 0)
		test_skip("no veth pair can be made: it takes the program ip (Debian: iproute2)");
}

/* The ring has room for all of them, however late the sink is. */
static void one_way(const char *to, const char *encap)
{
	struct child sink = START("sink", "--port", "packet:gb", "--once", "--check", "--stream",
				  "1", "--strict", "--buffer", "16M"),
		     sender;
	double bytes;
	char *r;

	sender = START("send", "--port", "packet:ga", "--to", to, "--packets", "5000", "--rate",
		       "20kpps", "--size", "imix", "--check", "--flows", "8", "--catch-up", "60s",
		       "--strict", encap ? "--encap" : NULL, encap);
	r = child_result(&sender, 0);
	CHECK_EQ(json_number(r, "sent"), 5000);
	bytes = json_number(r, "sent_bytes");
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "expected"), 5000);
	CHECK_EQ(json_number(r, "received"), 5000);
	CHECK_EQ(json_number(r, "received_bytes"),
		 bytes); /* of frames as they were sent: with their tags */
	CHECK_EQ(json_number(r, "socket_drops"), 0);
	free(r);
}

/* The kernel takes the outer one of two tags out of a frame. */
static const char *const encaps[] = {"qinq:s=128,c=1",
				     "gre-mpls:label=3,key=70000,from=198.18.1.2,to=198.18.1.1",
				     "gtpu:teid=9,from=198.18.0.2,to=198.18.0.1,pdu=down,qfi=9"};

static void encapsulated_round_trips(const char *encap)
{
	struct child sink = START("sink", "--port", "packet:gb", "--reflect"), ping;
	char *r;

	ping = START("ping", "--port", "packet:ga", "--to", "192.0.2.2:6000", "--packets", "100",
		     "--rate", "max", "--closed", "--timeout", "10s", "--encap", encap, "--flows",
		     "8", "--spread", "from");
	r = child_result(&ping, 0);
	CHECK_EQ(json_number(r, "received"), 100);
	CHECK_EQ(json_number(r, "received_bytes"), json_number(r, "sent_bytes"));
	free(r);
	kill(sink.pid, SIGTERM);
	free(child_result(&sink, 0));
}

/*
 * What a small ring did not take while the sink was stopped is counted, and kept apart from what
 * the link lost.
 */
static void overflow(void)
{
	struct child sink = START("sink", "--port", "packet:gb", "--once", "--buffer", "4096",
				  "--interval", "20ms"),
		     sender;
	char *r;

	kill(sink.pid, SIGSTOP);
	sender = START("send", "--port", "packet:ga", "--to", "192.0.2.2:5010", "--packets", "1000",
		       "--rate", "max");
	free(child_result(&sender, 0));
	kill(sink.pid, SIGCONT);
	child_until(&sink, "received"); /* there is room again */
	/* The first end packets were dropped as well. */
	sender = START("send", "--port", "packet:ga", "--to", "192.0.2.2:5010", "--packets", "1");
	free(child_result(&sender, 0));
	r = child_result(&sink, 0);
	CHECK(json_number(r, "socket_drops") > 500);
	CHECK(json_number(r, "socket_drops") <= 1017); /* of both, with their ends */
	free(r);
}

static int listen_in(uint16_t protocol)
{
	int fd = socket(AF_PACKET, SOCK_RAW, htons(protocol));

	CHECK(fd >= 0);
	return fd;
}

/* Whether a frame from one UDP port to another has come by. */
static bool heard(int fd, unsigned udp, unsigned from, unsigned to)
{
	uint8_t f[256];
	ssize_t n;

	while ((n = recv(fd, f, sizeof(f), MSG_DONTWAIT)) > 0)
		if ((unsigned)n >= udp + 8 && (unsigned)(f[udp] << 8 | f[udp + 1]) == from &&
		    (unsigned)(f[udp + 2] << 8 | f[udp + 3]) == to)
			return true;
	return false;
}

/* `udp`: where the header of UDP begins. */
static void round_trips(const char *to, uint16_t protocol, unsigned udp)
{
	struct child sink = START("sink", "--port", "packet:gb", "--reflect"), ping;
	int ear = listen_in(protocol);
	char *r;

	ping = START("ping", "--port", "packet:ga", "--to", to, "--packets", "300", "--rate", "max",
		     "--closed", "--timeout", "10s");
	r = child_result(&ping, 0);
	CHECK_EQ(json_number(r, "received"), 300);
	CHECK_EQ(json_number(r, "duplicates"), 0);
	free(r);
	/* turned: to whom it came from */
	CHECK(heard(ear, udp, 5010, 6000) && heard(ear, udp, 6000, 5010));
	close(ear);
	kill(sink.pid, SIGTERM);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), 300);
	free(r);
}

/* The kernel takes no datagram over IPv6 whose checksum is wrong. */
static void kernel_takes_them(void)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", "udp:[fd09::2]:0", "--once", "--strict"),
		     sender;
	char *r;

	sender = START("send", "--port", "packet:ga", "--to", to, "--packets", "300", "--rate",
		       "2kpps", "--size", "imix", "--flows", "4", "--catch-up", "60s", "--strict");
	free(child_result(&sender, 0));
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), 300);
	free(r);
}

/* As every interface has them, and to be said with the interface. */
static void link_local(void)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", "udp:[fe80::9:2%gb]:0", "--once", "--strict",
				 "--reflect"),
		     ping;
	char *at = strstr(to, "%gb"), *r;

	CHECK(at != NULL);
	at[2] = 'a'; /* the interface is the sender's own */
	ping = START("ping", "--port", "udp:[fe80::9:1%ga]:0", "--to", to, "--packets", "100",
		     "--rate", "2kpps", "--catch-up", "60s", "--timeout", "10s", "--strict");
	r = child_result(&ping, 0);
	CHECK_EQ(json_number(r, "received"), 100);
	CHECK(strstr(r, "\"port\":\"udp:[fe80::9:1%ga]:") != NULL);
	free(r);
	free(child_result(&sink, 0));
}

/* What arrived of a plane, in its window or not. */
static double arrived(const char *result, const char *plane)
{
	const char *at = strstr(result, plane);

	CHECK(at != NULL);
	return json_number(at, "early") + json_number(at, "on_time") + json_number(at, "late") +
	       json_number(at, "sent_late");
}

/* Fronthaul of 273 PRB. The kernel takes the tag out of its frames too. */
static void fronthaul(void)
{
	static const char late[] = "scs=30,layers=2,t2a-up=500-2000";
	struct child sink, sender;
	double bytes;
	char *r;

	CHECK(system("ip link set ga mtu 9000 && ip link set gb mtu 9000") == 0);
	sink = START("sink", "--port", "packet:gb", "--once", "--fronthaul", late, "--buffer",
		     "64M", "--check");
	sender = START("send", "--port", "packet:ga", "--fronthaul", "scs=30,layers=2", "--packets",
		       "3000", "--warmup", "45", "--catch-up", "60s", "--buffer", "64M", "--check");
	r = child_result(&sender, 0);
	CHECK_EQ(json_number(r, "sent"), 3000);
	bytes = json_number(r, "sent_bytes");
	CHECK_EQ(bytes, 3000 / 15 * (14 * 7678 + 60));
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), 3000);
	CHECK_EQ(json_number(r, "received_bytes"), bytes);
	CHECK_EQ(arrived(r, "c_plane"), 200);
	CHECK_EQ(arrived(r, "u_plane"), 2800);
	/* Each is sent 196 us before its symbol, and had to be there 500 us before it. */
	CHECK_EQ(json_number(strstr(r, "u_plane"), "early"), 0);
	CHECK_EQ(json_number(strstr(r, "u_plane"), "on_time"), 0);
	/* A slow machine sends all of them too late to judge. */
	CHECK(json_number(strstr(r, "u_plane"), "late") == 0 || !json_true(r, "clean"));
	free(r);
	CHECK(system("ip link set ga mtu 1500 && ip link set gb mtu 1500") == 0);
}

static void give_addresses(void)
{
	if (system("ip addr add fd09::1/64 dev ga nodad && ip addr add fd09::2/64 dev gb nodad && "
		   "ip addr add fe80::9:1/64 dev ga nodad && "
		   "ip addr add fe80::9:2/64 dev gb nodad") != 0)
		test_skip("IPv4 passes; there is no IPv6 here: sysctl "
			  "net.ipv6.conf.all.disable_ipv6=0");
}

int main(int argc, char **argv)
{
	test_program(argc, argv);
	test_pin();
	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		test_skip("no network namespace can be made: be root, or allow user namespaces");
	make_link();
	one_way("192.0.2.2:5010", NULL);
	for (unsigned i = 0; i < sizeof(encaps) / sizeof(*encaps); i++) {
		one_way("192.0.2.2:5010", encaps[i]);
		encapsulated_round_trips(encaps[i]);
	}
	overflow();
	fronthaul();
	round_trips("192.0.2.2:6000", ETH_P_IP, 34);
	give_addresses();
	one_way("[fd09::2]:5010", NULL);
	round_trips("[fd09::2]:6000", ETH_P_IPV6, 54);
	kernel_takes_them();
	link_local();
	return 0;
}
