/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application with an honest peer, and if BAD is no "-", with a hostile one as well. It checks
 * what the library hands out, and each byte of the honest peer's packets; it counts those that do
 * not follow the packet before. Once a second it prints its counts as one JSON object. SIGTERM ends
 * it.
 *
 * usage: victim BAD GOOD
 */
#include <inttypes.h>
#include <signal.h>

#include "test.h"
#include "victim.h"

#define LENGTH 200
#define BURST 8
#define PACE_US 1000 /* without a hostile peer */

static volatile sig_atomic_t ending;

/* The link to the honest peer: both sides number what they send. */
struct honest {
	struct dray_port *port;
	uint32_t next_out, next_in;
	uint64_t received, sent;
	uint64_t breaks; /* packets that did not follow the one before */
};

static void end(int signal)
{
	(void)signal;
	ending = 1;
}

static struct dray_port *open_port(const char *name)
{
	struct dray_options o = {
		.size = sizeof(o), .mode = DRAY_MODE_SLEEPING, .timeout_ms = 20000};
	struct dray_port *port = NULL;

	CHECK_EQ(dray_open(name, &o, &port), 0);
	return port;
}

static void receive(struct honest *h)
{
	struct dray_pkt p[BURST];
	unsigned n = dray_rx_burst(h->port, 0, p, BURST);

	for (unsigned i = 0; i < n; i++) {
		uint32_t number;

		memcpy(&number, p[i].data, sizeof(number));
		test_check(&p[i], LENGTH, number);
		h->breaks += number != h->next_in;
		h->next_in = number + 1;
	}
	dray_release(p, n);
	h->received += n;
}

static void send(struct honest *h)
{
	struct dray_pkt p[BURST];
	unsigned n = dray_tx_alloc(h->port, 0, p, BURST, LENGTH);

	for (unsigned i = 0; i < n; i++)
		test_fill(&p[i], LENGTH, h->next_out + i);
	n = dray_tx_burst(h->port, 0, p, n);
	h->next_out += n;
	h->sent += n;
}

static void report(const struct honest *h, const struct victim *v)
{
	struct dray_stats s = test_stats(h->port), bad = {0};
	uint64_t violations = 0;

	CHECK_EQ(s.misuse, 0);
	if (v->port) {
		bad = test_stats(v->port);
		CHECK_EQ(bad.misuse, 0);
		for (unsigned i = 0; i < DRAY_VIOLATIONS; i++)
			violations += bad.violations[i];
	}
	printf("{\"received\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"breaks\": %" PRIu64
	       ", \"hostile_received\": %" PRIu64 ", \"violations\": %" PRIu64
	       ", \"maps\": %" PRIu64 ", \"fds\": %u}\n",
	       h->received, h->sent, h->breaks, v->received, violations, bad.maps, test_open_fds());
	fflush(stdout);
}

static void work(struct honest *h, struct victim *v)
{
	if (v->port) {
		for (unsigned i = 0; i < 50; i++)
			victim_work(v);
		CHECK(dray_service(v->port) >= 0);
	}
	receive(h);
	send(h);
	CHECK(dray_service(h->port) >= 0);
	if (v->port)
		CHECK(dray_wait(v->port, 0, DRAY_WAIT_RX, 1) >= 0);
	else
		usleep(PACE_US);
}

int main(int argc, char **argv)
{
	struct victim v = {.low = UINTPTR_MAX, .seed = 88172645463325252ull};
	struct honest h = {0};
	uint64_t next = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: %s BAD|- GOOD\n", argv[0]);
		return 2;
	}
	signal(SIGTERM, end);
	if (strcmp(argv[1], "-") != 0)
		v.port = open_port(argv[1]);
	h.port = open_port(argv[2]);
	while (!ending) {
		work(&h, &v);
		if (clock_ns() > next) {
			report(&h, &v);
			next = clock_ns() + 1000000000;
		}
	}
	dray_release(v.held, v.n);
	CHECK_EQ(dray_close(h.port), 0);
	CHECK(!v.port || dray_close(v.port) == 0);
	return 0;
}
