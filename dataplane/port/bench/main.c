/* SPDX-License-Identifier: Apache-2.0 */
/* dray-probe: raw samples of libdray, of a bare ring, and of pipes and sockets. internal/measure/microbench interleaves and judges them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bare.h"
#include "bench.h"
#include "owner.h"
#include "kill.h"
#include "link.h"
#include "modes.h"
#include "sockets.h"

#define MAX_ARGUMENTS 4
#define MAX_VALUES 1000000u
#define FIXED_SPIN_US 50u
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

enum link_kind { LINK_BUSY, LINK_BUSY_LONG, LINK_LEARNS, LINK_FIXED, LINKS };

static struct link links[LINKS];

/* Opened once: the rounds use the same links. */
static struct link *link_of(enum link_kind kind)
{
	struct broker_options o = shape(kind == LINK_BUSY_LONG ? 9000 : 1500);
	uint32_t mode = kind >= LINK_LEARNS ? DRAY_MODE_ADAPTIVE : DRAY_MODE_BUSY;
	struct link *l = &links[kind];

	if (!l->broker) {
		bench_unpin(); /* the broker's thread inherits it */
		*l = link_open(&o, mode, kind == LINK_FIXED ? FIXED_SPIN_US : 0);
	}
	return l;
}

/* A port whose packets wait in a queue: 64 bytes, so many thousand a second. */
static struct link queueing_link(enum class_scheduler scheduler, enum class_discipline discipline, unsigned kpps)
{
	struct broker_options o = shape(1500);
	uint64_t rate = kpps * 1000ull * 64 * 8;

	o.geometry.pkt_slots = o.geometry.ring_size = 2048;
	o.classes = (struct wire_classes){.scheduler = scheduler, .classes = 1, .rate = rate, .burst = 32768};
	o.classes.class[0] = (struct wire_class){.discipline = (uint8_t)discipline, .limit = discipline == DISCIPLINE_BFIFO ? 65536 : 1000};
	if (discipline == DISCIPLINE_CODEL || discipline == DISCIPLINE_FQ_CODEL) {
		o.classes.class[0].target_ns = 5000000;
		o.classes.class[0].interval_ns = 100000000;
	}
	if (discipline == DISCIPLINE_SLOT)
		o.classes.class[0].target_ns = 500000;
	if (scheduler == SCHEDULER_HTB || scheduler == SCHEDULER_HFSC)
		o.classes.class[0].rate = o.classes.class[0].ceil = rate;
	if (scheduler == SCHEDULER_HTB)
		o.classes.class[0].peak = 32768;
	bench_unpin();
	return link_open(&o, DRAY_MODE_BUSY, 0);
}

/* Each link's broker has a directory of its own, which goes with it. */
static void close_links(void)
{
	for (unsigned i = 0; i < LINKS; i++)
		if (links[i].broker)
			link_close(&links[i]);
}

static double bare_ring(const unsigned *a)
{
	return bare_ring_rate(a[0]);
}

static double bare_copy(const unsigned *a)
{
	return bare_copy_rate(a[0]);
}

static double bare_line(const unsigned *a)
{
	return bare_line_round_trip(a[0]);
}

static double rate(const unsigned *a)
{
	return link_rate(link_of(a[0] > 1500 ? LINK_BUSY_LONG : LINK_BUSY), a[2], a[0], (int)a[1]);
}

static double queued_rate(const unsigned *a)
{
	struct link l = queueing_link(a[0] % (SCHEDULER_HFSC + 1), a[1] % DISCIPLINES, a[2]);
	double rate = link_rate_beyond(&l, a[3], 64);

	link_close(&l);
	return rate;
}

static unsigned bare_trips(const unsigned *a)
{
	bare_ring_round_trips(ns, a[0]);
	return a[0];
}

static unsigned trips(const unsigned *a)
{
	link_round_trips(link_of(LINK_BUSY), ns, a[0]);
	return a[0];
}

/* NULL: the bench has not opened it. */
static const struct channel *channel_of(unsigned kind)
{
	static struct channel channels[3];
	struct channel *c = &channels[kind % 3];

	if (c->b_in == 0 && (kind == 0 ? channel_pipe(c) : kind == 1 ? channel_unix(c) : channel_of_sockets(c, UDP_A, UDP_B)) < 0)
		return NULL;
	return c;
}

static double socket_rate(const unsigned *a)
{
	const struct channel *c = channel_of(a[0]);

	return c ? channel_rate(c, a[1]) : 0;
}

static unsigned socket_trips(const unsigned *a)
{
	const struct channel *c = channel_of(a[0]);

	if (!c)
		return 0;
	channel_round_trips(c, ns, a[1]);
	return a[1];
}

static struct link *adaptive_link(unsigned fixed)
{
	return link_of(fixed ? LINK_FIXED : LINK_LEARNS);
}

static unsigned adaptive(const unsigned *a)
{
	const struct load load = {.arrivals = (enum arrivals)(a[1] % (ARRIVALS_BURSTS + 1)), .pps = a[2], .ms = a[3]};
	struct loaded loaded;
	unsigned n = adaptive_load(adaptive_link(a[0]), &load, &loaded, ns, MAX_VALUES);

	printf("\"cpu_percent\": %.9g, \"starved_percent\": %.9g, \"send_ns\": %.9g, ", loaded.cpu, loaded.starved, loaded.send_ns);
	return n;
}

static double adaptive_rate(const unsigned *a)
{
	return link_rate(adaptive_link(a[0]), a[1], 64, 0);
}

static unsigned wake(const unsigned *a)
{
	if (a[0] == 0)
		first_futex(ns, a[1]);
	else if (a[0] == 1)
		first_socket(ns, a[1]);
	else
		first_packets(link_of(LINK_LEARNS), ns, a[1]);
	return a[1];
}

static unsigned set_up(const unsigned *a)
{
	struct broker_options o = shape(1500);

	set_ups(&o, ns, a[0]);
	return a[0];
}

static unsigned kill_end(const unsigned *a)
{
	struct kills k = {.rounds = a[1], .recovery = ns};

	if (a[0] == 0)
		kill_under_load(&k);
	else if (a[0] == 1)
		kill_without_broker(&k);
	else
		kill_in_handshake(&k, (a[0] - 2) % HANDSHAKE_STEPS);
	broken |= k.lost || k.leaked;
	printf("\"packets\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"leaked\": %" PRIu64 ", \"stalls\": %" PRIu64 ", \"longest_ns\": %" PRIu64
	       ", \"starved_ns\": %" PRIu64 ", ",
	       k.packets, k.lost, k.leaked, k.stalls, k.longest, k.starved);
	return k.rounds;
}

/* A case is one value, or as many as it puts into ns[]. */
static const struct probe {
	const char *name, *arguments, *unit;
	unsigned count; /* of arguments; of a case with several values the last one is at most MAX_VALUES */
	double (*one)(const unsigned *arguments);
	unsigned (*several)(const unsigned *arguments);
} probes[] = {
	{"bare-ring", "PACKETS", "packets/s", 1, bare_ring, NULL},
	{"bare-copy", "PACKETS", "packets/s", 1, bare_copy, NULL},
	{"bare-line", "TRIPS", "ns", 1, bare_line, NULL},
	{"bare-trips", "TRIPS", "ns", 1, NULL, bare_trips},
	{"link-rate", "BYTES ALL PACKETS", "packets/s", 3, rate, NULL},
	{"queued-rate", "SCHEDULER DISCIPLINE KPPS PACKETS", "packets/s", 4, queued_rate, NULL},
	{"link-trips", "TRIPS", "ns", 1, NULL, trips},
	{"socket-rate", "SOCKET MS", "packets/s", 2, socket_rate, NULL},
	{"socket-trips", "SOCKET TRIPS", "ns", 2, NULL, socket_trips},
	{"adaptive", "FIXED ARRIVALS PPS MS", "ns", 4, NULL, adaptive},
	{"adaptive-rate", "FIXED PACKETS", "packets/s", 2, adaptive_rate, NULL},
	{"wake", "KIND TIMES", "ns", 2, NULL, wake},
	{"set-up", "TIMES", "ns", 1, NULL, set_up},
	{"kill", "KIND TIMES", "ns", 2, NULL, kill_end},
};

#define PROBES (sizeof(probes) / sizeof(probes[0]))

static int usage(void)
{
	fprintf(stderr, "usage: dray-probe | dray-probe --alone PACKETS\n"
			"Reads lines \"ROUND CASE ARGUMENT...\", and answers each with a line of JSON that has its samples. ALL is 1 to write\n"
			"and read 64 bytes, 0 for the header's 16. SOCKET is 0 for a pipe, 1 for UNIX datagrams, 2 for UDP on descriptors 3 and 4.\n"
			"SCHEDULER and DISCIPLINE: PROTOCOL.md, section 12. KPPS: the rate at which packets of 64 bytes leave, while more are offered.\n"
			"KIND of wake: 0 futex, 1 socket, 2 link; of kill: 0 under load, 1 without a broker, 2 and more after a handshake step.\n"
			"FIXED: 1 for a port that polls 50 us before it sleeps, 0 for one that learns. ARRIVALS: 0 regular, 1 random, 2 in bursts of 32. Cases:\n");
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
	if (!p || n != p->count || (p->several && (arguments[n - 1] < 1 || arguments[n - 1] > MAX_VALUES)))
		return -1;
	printf("{\"case\": \"%s\", \"round\": %lu, \"arguments\": [", name, strtoul(round, NULL, 10));
	for (unsigned i = 0; i < n; i++)
		printf("%s%u", i ? "," : "", arguments[i]);
	printf("], \"unit\": \"%s\", ", p->unit);
	fflush(stdout); /* a case that forks must not leave this to its children */
	if (p->one) {
		printf("\"values\": [%.9g]}\n", p->one(arguments));
	} else {
		unsigned values = p->several(arguments);

		printf("\"values\": [");
		for (unsigned i = 0; i < values; i++)
			printf("%s%" PRIu32, i ? "," : "", ns[i]);
		printf("]}\n");
	}
	fflush(stdout);
	return 0;
}

static int count_alone(uint64_t packets)
{
	struct broker_options small = shape(1500);
	struct link link = link_open(&small, DRAY_MODE_BUSY, 0);

	bench_keep(link_alone(&link, packets));
	link_close(&link);
	return 0;
}

int main(int argc, char **argv)
{
	char line[128];
	int understood = 1;

	if (argc == 3 && !strcmp(argv[1], "--alone"))
		return count_alone(strtoull(argv[2], NULL, 10)); /* nothing that depends on time */
	ns = calloc(MAX_VALUES, sizeof(*ns));
	if (argc != 1 || !ns)
		return usage();
	bench_begin();
	while (understood && fgets(line, sizeof(line), stdin))
		understood = answer(line) == 0;
	close_links();
	return understood ? broken : usage();
}
