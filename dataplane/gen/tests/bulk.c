/* SPDX-License-Identifier: Apache-2.0 */
/* Two streams of one sender, and the DSCP of what it sends, over UDP. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "support.h"

/* The most packets that can have been due since then, at an interval. A busy CPU may hold a sender
 * back at any time: what was due before the measurement then counts as part of it. */
static double due_since(uint64_t begin, uint64_t interval_ns)
{
	return 1 + (double)((clock_now() - begin) / interval_ns);
}

/*
 * Whether there was a bulk, or the sender may have had no time for it: held back for long, it sends
 * what the first stream is late with, and then it is through.
 */
static bool sent_bulk(const char *result)
{
	return json_number(result, "bulk.sent") > 0 || json_number(result, "lateness.max") > 5e6;
}

/* The bulk has a schedule of its own, which ends with the first stream's. */
static void rates(void)
{
	uint64_t begin = clock_now();
	struct child sender = START("send", "--port", "null", "--rate", "100pps", "--packets", "50",
				    "--catch-up", "60s", "--warmup", "10", "--bulk", "4kpps");
	char *r = child_result(&sender, 0);
	double bulk = json_number(r, "bulk.scheduled");

	CHECK_EQ(json_number(r, "sent"), 50);
	CHECK_EQ(json_number(r, "sent_bytes"), 50 * 98);
	CHECK_EQ(json_number(r, "bulk.interval_ns"), 250000);
	CHECK_EQ(json_number(r, "bulk.sent"), bulk);
	CHECK_EQ(json_number(r, "bulk.sent_bytes"), bulk * 1514);
	CHECK(sent_bulk(r) && bulk <= due_since(begin, 250000));
	free(r);
	begin = clock_now();
	/* 10,000 bits of payload each */
	sender =
		START("send", "--port", "null", "--rate", "100pps", "--packets", "50", "--catch-up",
		      "60s", "--layer", "payload", "--bulk", "10Mbps,size=1292,flows=3");
	r = child_result(&sender, 0);
	CHECK_EQ(json_number(r, "bulk.interval_ns"), 1000000);
	CHECK(json_number(r, "bulk.sent") <= due_since(begin, 1000000));
	CHECK_EQ(json_number(r, "bulk.flows"), 3);
	free(r);
}

/* The sink measures the first stream alone, whichever it saw first. */
static void both_arrive(const char *at, unsigned headers, const char *followed)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", at, "--once", "--strict", "--check",
				 "--buffer", "64M", followed ? "--stream" : NULL, followed),
		     sender;
	double bulk;
	char *r;

	sender = START("send", "--port", at, "--to", to, "--stream", "9", "--rate", "500pps",
		       "--packets", "100", "--warmup", "20", "--catch-up", "60s", "--check",
		       "--strict", "--bulk", "2kpps,size=500,flows=2");
	r = child_result(&sender, 0);
	CHECK_EQ(json_number(r, "sent"), 100);
	CHECK_EQ(json_number(r, "bulk.stream"), 10);
	bulk = json_number(r, "bulk.sent");
	CHECK(sent_bulk(r));
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "stream"), 9);
	CHECK_EQ(json_number(r, "received"), 100);
	CHECK_EQ(json_number(r, "received_bytes"), 100 * (headers + 56));
	CHECK_EQ(json_number(r, "other_stream"), 0);
	CHECK_EQ(json_number(r, "reordered"), 0);
	if (bulk > 0) {
		CHECK_EQ(json_number(r, "bulk.received"), bulk);
		CHECK_EQ(json_number(r, "bulk.received_bytes"), bulk * 500);
		/* What a late sink takes in one call (IO_BATCH) has one time, and no rate. */
		CHECK(json_number(r, "bulk.receive_bps") > 0 || bulk <= 128);
	}
	free(r);
}

/* Without a bulk stream neither end says anything of one. */
static void alone(void)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", "udp:127.0.0.1:0", "--once"), sender;
	char *r;

	sender = START("send", "--port", "udp:127.0.0.1:0", "--to", to, "--packets", "10");
	r = child_result(&sender, 0);
	CHECK(!strstr(r, "\"bulk\""));
	free(r);
	r = child_result(&sink, 0);
	CHECK(!strstr(r, "\"bulk\""));
	free(r);
}

/* The octet with the DSCP and ECN of the next datagram, and whether it is the bulk's. */
static int octet_of(int fd, bool *bulk)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	uint8_t packet[2000], tos;
	struct iovec part = {.iov_base = packet, .iov_len = sizeof(packet)};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c;
	int class;

	CHECK(recvmsg(fd, &m, 0) >= 56);
	*bulk = packet[6] & 4;
	c = CMSG_FIRSTHDR(&m);
	CHECK(c != NULL);
	if (c->cmsg_level == IPPROTO_IPV6) {
		memcpy(&class, CMSG_DATA(c), sizeof(class));
		return class;
	}
	memcpy(&tos, CMSG_DATA(c), sizeof(tos));
	return tos;
}

/* A socket that reports it, and its address. */
static int listening(bool ip6, char to[64])
{
	int fd = socket(ip6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1,
	    bytes = 4 << 20;
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t n = ip6 ? sizeof(v6) : sizeof(v4);
	struct sockaddr *at = ip6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;

	CHECK(fd >= 0 && bind(fd, at, n) == 0 && getsockname(fd, at, &n) == 0);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) == 0);
	CHECK((ip6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &one, sizeof(one))
		   : setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one))) == 0);
	snprintf(to, 64, ip6 ? "[::1]:%u" : "127.0.0.1:%u",
		 ntohs(ip6 ? v6.sin6_port : v4.sin_port));
	return fd;
}

/* Each stream has its own. */
static void dscp(bool ip6)
{
	char to[64];
	int fd = listening(ip6, to);
	struct child sender = START("send", "--port", ip6 ? "udp:[::1]:0" : "udp:127.0.0.1:0",
				    "--to", to, "--packets", "20", "--flows", "2", "--dscp", "46",
				    "--bulk", "3kpps,dscp=10,flows=2", "--catch-up", "60s");
	char *r = child_result(&sender, 0);
	double bulk = json_number(r, "bulk.sent");
	unsigned of[2] = {0};

	CHECK_EQ(json_number(r, "dscp"), 46);
	CHECK_EQ(json_number(r, "bulk.dscp"), 10);
	for (double i = 0; i < 20 + 8 + bulk; i++) {
		bool is_bulk;
		int octet = octet_of(fd, &is_bulk);

		CHECK_EQ(octet, is_bulk ? 10 << 2 : 46 << 2);
		of[is_bulk]++;
	}
	CHECK_EQ(of[0], 28);
	CHECK_EQ(of[1], bulk);
	CHECK(sent_bulk(r));
	free(r);
	close(fd);
}

int main(int argc, char **argv)
{
	test_program(argc, argv);
	test_pin();
	rates();
	alone();
	both_arrive("udp:127.0.0.1:0", 42, NULL);
	both_arrive("udp:127.0.0.1:0", 42, "9");
	dscp(false);
	test_needs_ip6();
	both_arrive("udp:[::1]:0", 62, NULL);
	dscp(true);
	return 0;
}
