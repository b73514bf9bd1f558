/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay between sender and sink that loses, doubles, swaps, damages and invents packets: each is
 * counted exactly.
 *
 *   draygen send ---> relay (this process) ---> draygen sink
 *
 * usage: relay PROGRAM [6]
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "packet.h"
#include "support.h"

#define PACKETS 2000u
#define WARMUP 50u

struct relay {
	int in, out;
	uint8_t held[2048];
	ssize_t held_bytes;
	unsigned lost, doubled, swapped, damaged, invented;
};

/* Of the family of `loopback`, as the sink is. */
static struct relay relay_open(const char *loopback, const char *sink, char to[ADDRESS_TEXT])
{
	union address at, next;
	struct relay r = {.held_bytes = 0};
	socklen_t length = sizeof(at);
	int bytes = 4 << 20; /* holds them all, however late this process is */

	CHECK(address_read(loopback, &at) == NULL && address_read(sink, &next) == NULL);
	r.in = socket(at.any.sa_family, SOCK_DGRAM, 0);
	r.out = socket(at.any.sa_family, SOCK_DGRAM, 0);
	CHECK(r.in >= 0 && r.out >= 0);
	if (setsockopt(r.in, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		test_skip("it takes CAP_NET_ADMIN to have a socket buffer that loses nothing");
	CHECK(bind(r.in, &at.any, address_length(&at)) == 0);
	CHECK(getsockname(r.in, &at.any, &length) == 0);
	CHECK(connect(r.out, &next.any, address_length(&next)) == 0);
	address_print(&at, to);
	return r;
}

static void pass(struct relay *r, const uint8_t *data, ssize_t n)
{
	CHECK(send(r->out, data, (size_t)n, 0) == n);
}

static void pass_data(struct relay *r, uint8_t *data, ssize_t n, uint64_t sequence)
{
	switch (sequence % 20) {
	case 3:
		r->lost++;
		return;
	case 7:
		r->doubled++;
		pass(r, data, n);
		break;
	case 11: /* goes after the next one */
		r->swapped++;
		memcpy(r->held, data, (size_t)n);
		r->held_bytes = n;
		return;
	case 15:
		r->damaged++;
		data[n - 1] ^= 1;
		break;
	case 18:
		r->invented++;
		pass(r, (const uint8_t *)"something else", 14);
		break;
	}
	pass(r, data, n);
	if (r->held_bytes)
		pass(r, r->held, r->held_bytes);
	r->held_bytes = 0;
}

/* Until the sender has been silent for a second after its end packets. */
static void relay_all(struct relay *r)
{
	uint8_t data[2048];
	bool end = false;

	for (;;) {
		struct pollfd p = {.fd = r->in, .events = POLLIN};
		struct io_buf buf = {.data = data};
		enum packet_verdict verdict;
		struct packet packet;
		ssize_t n;

		if (poll(&p, 1, end ? 1000 : 30000) <= 0)
			break;
		n = recv(r->in, data, sizeof(data), 0);
		CHECK(n > 0);
		buf.length = (uint32_t)n;
		(void)packet_read(&buf, 1, true, &packet, &verdict);
		CHECK_EQ(verdict, PACKET_GOOD);
		if (packet.type == PACKET_END) {
			/* The sink is gone with the first, of which several are sent. */
			CHECK(send(r->out, data, (size_t)n, 0) == n ||
			      (end && errno == ECONNREFUSED));
			end = true;
		} else if (packet.flags & PACKET_WARMUP) {
			pass(r, data, n);
		} else {
			pass_data(r, data, n, packet.sequence);
		}
	}
	CHECK(end);
}

static void check_sink(const char *line, const struct relay *r)
{
	CHECK_EQ(json_number(line, "expected"), PACKETS);
	CHECK_EQ(json_number(line, "received"), PACKETS - r->lost - r->damaged);
	CHECK_EQ(json_number(line, "lost"), r->lost + r->damaged);
	CHECK_EQ(json_number(line, "duplicates"), r->doubled);
	CHECK_EQ(json_number(line, "reordered"), r->swapped);
	CHECK_EQ(json_number(line, "reordered_distance_max"), 2);
	CHECK_EQ(json_number(line, "corrupt"), r->damaged);
	CHECK_EQ(json_number(line, "foreign"), r->invented);
	CHECK_EQ(json_number(line, "warmup"), WARMUP);
	CHECK_EQ(json_number(line, "socket_drops"), 0);
	CHECK_EQ(json_number(line, "one_way.n"), PACKETS - r->lost - r->damaged);
	CHECK(json_true(line, "end_seen") && !json_true(line, "clean"));
}

int main(int argc, char **argv)
{
	bool ip6 = argc > 2 && strcmp(argv[2], "6") == 0;
	const char *port = ip6 ? "udp:[::1]:0" : "udp:127.0.0.1:0";
	char sink_at[64], to[ADDRESS_TEXT];
	struct child sink, sender;
	struct relay r;
	char *result;

	test_program(ip6 ? 2 : argc, argv);
	if (ip6)
		test_needs_ip6();
	test_pin();
	sink = SINK(sink_at, "sink", "--port", port, "--check", "--strict", "--once");
	r = relay_open(port + strlen("udp:"), sink_at, to);
	/* A stall of this machine makes the sender late, never less than complete. */
	sender = START("send", "--port", port, "--to", to, "--packets", "2000", "--warmup", "50",
		       "--rate", "20kpps", "--size", "300", "--check", "--catch-up", "60s",
		       "--strict");
	relay_all(&r);
	result = child_result(&sender, 0);
	CHECK_EQ(json_number(result, "sent"), PACKETS);
	CHECK_EQ(json_number(result, "sent_bytes"), PACKETS * 300);
	free(result);
	result = child_result(&sink, 4);
	CHECK(r.lost && r.doubled && r.swapped && r.damaged && r.invented);
	check_sink(result, &r);
	free(result);
	return 0;
}
