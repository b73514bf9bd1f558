/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two applications of the end-to-end tests: one offers IP packets of some DSCPs, each at its own
 * rate, whatever its port's traffic classes do with them; the other takes what comes. SIGTERM ends
 * them.
 *
 * usage: offer PORT LENGTH DSCP:BITRATE ...     LENGTH in bytes, BITRATE in bit/s
 *        offer PORT
 */
#include <signal.h>

#include "test.h"

#define BURST 32
#define PACE_US 500
#define STREAMS 8
#define SECOND 1000000000.0

static volatile sig_atomic_t ending;

static void end(int signal)
{
	(void)signal;
	ending = 1;
}

struct stream {
	unsigned dscp;
	double rate; /* packets per second */
	double sent;
};

static struct dray_port *open_port(const char *name)
{
	struct dray_options o = {
		.size = sizeof(o), .mode = DRAY_MODE_SLEEPING, .timeout_ms = 20000};
	struct dray_port *port = NULL;

	CHECK_EQ(dray_open(name, &o, &port), 0);
	return port;
}

static void fill(struct dray_pkt *p, uint32_t length, unsigned dscp)
{
	static const uint8_t ipv4[] = {8, 0, 0x45};
	uint8_t *frame = p->data;

	memset(frame, 0, length);
	memcpy(frame + 12, ipv4, sizeof(ipv4));
	frame[15] = (uint8_t)(dscp << 2);
	p->length = length;
}

/* What is due; what finds no buffer, or no link, comes later. */
static void offer(struct dray_port *port, struct stream *s, uint32_t length, double seconds)
{
	while (s->rate * seconds - s->sent >= 1) {
		double due = s->rate * seconds - s->sent;
		struct dray_pkt p[BURST];
		unsigned n = dray_tx_alloc(port, 0, p, due < BURST ? (unsigned)due : BURST, length),
			 taken;

		for (unsigned i = 0; i < n; i++)
			fill(&p[i], length, s->dscp);
		taken = dray_tx_burst(port, 0, p, n);
		dray_release(&p[taken], n - taken);
		s->sent += taken;
		if (taken == 0)
			return;
	}
}

static unsigned parse(char **arguments, unsigned n, uint32_t length, struct stream *streams)
{
	double bitrate;

	CHECK(n <= STREAMS && length >= 64);
	for (unsigned i = 0; i < n; i++) {
		CHECK_EQ(sscanf(arguments[i], "%u:%lf", &streams[i].dscp, &bitrate), 2);
		streams[i].rate = bitrate / 8 / length;
	}
	return n;
}

static void offer_all(struct dray_port *port, struct stream *streams, unsigned n, uint32_t length)
{
	uint64_t began;

	while (!ending && !test_up(port)) {
		test_service(port, NULL);
		usleep(PACE_US);
	}
	began = clock_ns();
	while (!ending) {
		test_service(port, NULL);
		for (unsigned i = 0; i < n; i++)
			offer(port, &streams[i], length, (double)(clock_ns() - began) / SECOND);
		usleep(PACE_US);
	}
}

static void take_all(struct dray_port *port)
{
	struct dray_pkt p[BURST];

	while (!ending) {
		test_service(port, NULL);
		dray_release(p, dray_rx_burst(port, 0, p, BURST));
		(void)dray_wait(port, 0, DRAY_WAIT_RX, 20);
	}
}

int main(int argc, char **argv)
{
	struct stream streams[STREAMS] = {0};
	uint32_t length = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	unsigned n = argc > 3 ? parse(argv + 3, (unsigned)argc - 3, length, streams) : 0;
	struct dray_port *port;

	CHECK(argc > 1);
	signal(SIGTERM, end);
	port = open_port(argv[1]);
	if (n)
		offer_all(port, streams, n, length);
	else
		take_all(port);
	return dray_close(port) ? 1 : 0;
}
