/* SPDX-License-Identifier: Apache-2.0 */
/* dray-probe: raw samples of libdray, of the bare ring below it, and of what it replaces. The bench interleaves and judges them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "bench.h"
#include "home.h"
#include "kill.h"
#include "link.h"
#include "modes.h"
#include "sockets.h"

#define MAX_ARGUMENTS 4
#define MAX_VALUES 1000000u
#define UDP_A 3 /* descriptors of the two ends that the bench has opened, since they are in network namespaces of their own */
#define UDP_B 4

static uint32_t *ns; /* room for MAX_VALUES */
static int broken;   /* a kill lost a packet, or leaked a buffer */

/* A port for packets of this MTU; its stride is an odd number of lines. */
static struct broker_options shape(uint32_t mtu)
{
	struct broker_options o = {.mtu = mtu, .sample_shift = UNCHECKED ? SAMPLE_NONE : 0};

	o.geometry.ring_size = 2 * BARE_SLOTS;
	o.geometry.pkt_slots = BARE_SLOTS;
	o.geometry.pkt_stride = ((mtu + 128 + 64 + 63) / 64 | 1) * 64;
	return o;
}

/* Opened once: the rounds use the same links. */
static struct link *link_of(uint32_t mtu, uint32_t mode)
{
	static struct link links[3];
	struct broker_options o = shape(mtu);
	struct link *l = &links[mode == DRAY_MODE_ADAPTIVE ? 2 : mtu > 1500];

	if (!l->broker) {
		bench_unpin(); /* the broker's thread inherits it */
		*l = link_open(&o, mode);
	}
	return l;
}

static void print_one(const char *unit, double value)
{
	printf("\"unit\": \"%s\", \"values\": [%.9g]", unit, value);
}

static void print_ns(unsigned n)
{
	printf("\"unit\": \"ns\", \"values\": [");
	for (unsigned i = 0; i < n; i++)
		printf("%s%" PRIu32, i ? "," : "", ns[i]);
	printf("]");
}

static void bare_ring(const unsigned *a)
{
	print_one("packets/s", bare_ring_rate(a[0]));
}

static void bare_line(const unsigned *a)
{
	print_one("ns", bare_line_round_trip(a[0]));
}

static void bare_trips(const unsigned *a)
{
	bare_ring_round_trips(ns, a[0]);
	print_ns(a[0]);
}

static void rate(const unsigned *a)
{
	print_one("packets/s", link_rate(link_of(a[0] > 1500 ? 9000 : 1500, DRAY_MODE_BUSY), a[2], a[0], (int)a[1]));
}

static void link_trips(const unsigned *a)
{
	link_round_trips(link_of(1500, DRAY_MODE_BUSY), ns, a[0]);
	print_ns(a[0]);
}

/* NULL: it cannot be had. */
static const struct channel *channel_of(unsigned kind)
{
	static struct channel channels[3];
	struct channel *c = &channels[kind % 3];

	if (c->b_in == 0 && (kind == 0 ? channel_pipe(c) : kind == 1 ? channel_unix(c) : channel_of_sockets(c, UDP_A, UDP_B)) < 0)
		return NULL;
	return c;
}

static void socket_rate(const unsigned *a)
{
	const struct channel *c = channel_of(a[0]);

	if (c)
		print_one("packets/s", channel_rate(c, a[1]));
	else
		printf("\"error\": \"no descriptors\"");
}

static void socket_trips(const unsigned *a)
{
	const struct channel *c = channel_of(a[0]);

	if (!c) {
		printf("\"error\": \"no descriptors\"");
		return;
	}
	channel_round_trips(c, ns, a[1]);
	print_ns(a[1]);
}

static void adaptive(const unsigned *a)
{
	double cpu, starved;
	unsigned n = adaptive_load(link_of(1500, DRAY_MODE_ADAPTIVE), a[0], a[1], &cpu, &starved, ns, MAX_VALUES);

	printf("\"cpu_percent\": %.9g, \"starved_percent\": %.9g, ", cpu, starved);
	print_ns(n);
}

static void wake_futex(const unsigned *a)
{
	first_futex(ns, a[0]);
	print_ns(a[0]);
}

static void wake_socket(const unsigned *a)
{
	first_socket(ns, a[0]);
	print_ns(a[0]);
}

static void wake_link(const unsigned *a)
{
	first_packets(link_of(1500, DRAY_MODE_ADAPTIVE), ns, a[0]);
	print_ns(a[0]);
}

static void set_up(const unsigned *a)
{
	struct broker_options o = shape(1500);

	set_ups(&o, ns, a[0]);
	print_ns(a[0]);
}

static void print_kills(const struct kills *k)
{
	broken |= k->lost || k->leaked;
	printf("\"packets\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"leaked\": %" PRIu64 ", \"stalls\": %" PRIu64 ", \"longest_ns\": %" PRIu64
	       ", \"starved_ns\": %" PRIu64 ", ",
	       k->packets, k->lost, k->leaked, k->stalls, k->longest, k->starved);
	print_ns(k->rounds);
}

static void kills_loaded(const unsigned *a)
{
	struct kills k = {.rounds = a[0], .recovery = ns};

	kill_under_load(&k);
	print_kills(&k);
}

static void kills_brokerless(const unsigned *a)
{
	struct kills k = {.rounds = a[0], .recovery = ns};

	kill_without_broker(&k);
	print_kills(&k);
}

static void kills_handshake(const unsigned *a)
{
	struct kills k = {.rounds = a[1], .recovery = ns};

	kill_in_handshake(&k, a[0] % HANDSHAKE_STEPS);
	print_kills(&k);
}

static const struct probe {
	const char *name, *arguments;
	unsigned count; /* of arguments; the last one is bounded by MAX_VALUES if it counts values */
	void (*run)(const unsigned *arguments);
	int counts;
} probes[] = {
	{"bare-ring", "PACKETS", 1, bare_ring, 0},
	{"bare-line", "TRIPS", 1, bare_line, 1},
	{"bare-trips", "TRIPS", 1, bare_trips, 1},
	{"link-rate", "BYTES ALL PACKETS", 3, rate, 0},
	{"link-trips", "TRIPS", 1, link_trips, 1},
	{"socket-rate", "KIND MS", 2, socket_rate, 0},
	{"socket-trips", "KIND TRIPS", 2, socket_trips, 1},
	{"adaptive", "PPS MS", 2, adaptive, 0},
	{"wake-futex", "TIMES", 1, wake_futex, 1},
	{"wake-socket", "TIMES", 1, wake_socket, 1},
	{"wake-link", "TIMES", 1, wake_link, 1},
	{"set-up", "TIMES", 1, set_up, 1},
	{"kill-loaded", "TIMES", 1, kills_loaded, 1},
	{"kill-brokerless", "TIMES", 1, kills_brokerless, 1},
	{"kill-handshake", "STEP TIMES", 2, kills_handshake, 1},
};

#define PROBES (sizeof(probes) / sizeof(probes[0]))

static int usage(void)
{
	fprintf(stderr, "usage: dray-probe | dray-probe --alone PACKETS\n"
			"Reads lines \"ROUND CASE ARGUMENT...\", and answers each with a line of JSON that has its samples. KIND is 0 for a pipe,\n"
			"1 for UNIX datagrams, 2 for UDP on the sockets that descriptors 3 and 4 are. Cases:\n");
	for (unsigned i = 0; i < PROBES; i++)
		fprintf(stderr, "  %s %s\n", probes[i].name, probes[i].arguments);
	fprintf(stderr, "--alone has both ends of a link in one thread, and prints nothing: to be run under callgrind.\n"
			"exit: 0 done, 1 error, or a kill lost a packet or leaked a buffer, 2 usage\n");
	return 2;
}

/* Carry out a line. -1: it is not understood. */
static int answer(char *line)
{
	unsigned arguments[MAX_ARGUMENTS] = {0}, n = 0;
	const char *round = strtok(line, " \n"), *name = strtok(NULL, " \n"), *word;
	const struct probe *p = NULL;

	for (unsigned i = 0; name && i < PROBES; i++)
		if (!strcmp(probes[i].name, name))
			p = &probes[i];
	while (n < MAX_ARGUMENTS && (word = strtok(NULL, " \n")))
		arguments[n++] = (unsigned)strtoul(word, NULL, 10);
	if (!p || n != p->count || (p->counts && (arguments[n - 1] < 1 || arguments[n - 1] > MAX_VALUES)))
		return -1;
	printf("{\"case\": \"%s\", \"round\": %lu, \"arguments\": [", name, strtoul(round, NULL, 10));
	for (unsigned i = 0; i < n; i++)
		printf("%s%u", i ? "," : "", arguments[i]);
	printf("], ");
	fflush(stdout); /* a case that forks must not leave this to its children */
	p->run(arguments);
	printf("}\n");
	fflush(stdout);
	return 0;
}

static int count_alone(uint64_t packets)
{
	struct broker_options small = shape(1500);
	struct link link = link_open(&small, DRAY_MODE_BUSY);

	bench_keep(link_alone(&link, packets));
	link_close(&link);
	return 0;
}

int main(int argc, char **argv)
{
	char line[128];

	if (argc == 3 && !strcmp(argv[1], "--alone"))
		return count_alone(strtoull(argv[2], NULL, 10)); /* nothing that depends on time */
	ns = calloc(MAX_VALUES, sizeof(*ns));
	if (argc != 1 || !ns)
		return usage();
	bench_begin();
	while (fgets(line, sizeof(line), stdin))
		if (answer(line) < 0)
			return usage();
	return broken;
}
