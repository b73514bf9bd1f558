/* SPDX-License-Identifier: Apache-2.0 */
/* Rates and round trips, in turns: bare, libdray, libdray without its checks, and what applications use without it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bare.h"
#include "bench.h"
#include "figures.h"
#include "link.h"
#include "sections.h"
#include "sockets.h"

#define PACKETS 2000000u
#define TRIPS 10000u
#define CHANNEL_MS 30
#define CHANNEL_TRIPS 200u
#define CHANNELS 3

#define RATES "one direction, burst 32"
#define TRIP "round trip of one 64 B packet, p50"

static const char bare_ring[] = "bare ring, 64 B written and read";
static const char link_64[] = "libdray, 64 B, header written and read";
static const char link_1518[] = "libdray, 1518 B, header written and read";
static const char link_9000[] = "libdray, 9000 B, header written and read";
static const char bare_trip[] = "bare ring, 64 B";
static const char link_trip[] = "libdray, 64 B";

/* The other program, in which the checks are left out: asked for a rate by a line, it answers with one. */
struct unchecked {
	FILE *to, *from;
};

static struct unchecked unchecked_start(void)
{
	struct unchecked u = {0};
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
	int to[2], from[2];

	if (n < 0 || pipe(to) < 0 || pipe(from) < 0)
		return u;
	snprintf(path + n, 16, "-unchecked");
	if (access(path, X_OK) < 0)
		return u;
	if (fork() == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl(path, path, "--serve", (char *)NULL);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	u.to = fdopen(to[1], "w");
	u.from = fdopen(from[0], "r");
	return u;
}

static void unchecked_add(struct unchecked *u)
{
	struct figure *f = figure(RATES, "libdray without checks and stamps, 64 B header", "packets/s", link_64);
	char line[32];

	if (!u->to || fprintf(u->to, "%u\n", PACKETS) < 0 || fflush(u->to) || !fgets(line, sizeof(line), u->from))
		figure_missing(f, "the program built without checks is not beside this one");
	else
		figure_add(f, strtod(line, NULL));
}

struct peers {
	struct channel channels[CHANNELS];
	const char *missing[CHANNELS];
};

static const char *const channel_names[CHANNELS] = {"pipe, 64 B", "UNIX datagram socket, 64 B", "UDP socket over veth, 64 B"};
static const char *const channel_trips[CHANNELS] = {"pipe", "UNIX datagram socket", "UDP socket over veth"};

static void peers_open(struct peers *p)
{
	*p = (struct peers){0};
	if (channel_pipe(&p->channels[0]))
		p->missing[0] = "no pipe";
	if (channel_unix(&p->channels[1]))
		p->missing[1] = "no socket";
	(void)channel_udp(&p->channels[2], &p->missing[2]);
}

static void peers_add(const struct peers *p)
{
	uint32_t ns[CHANNEL_TRIPS];

	for (unsigned i = 0; i < CHANNELS; i++) {
		struct figure *rate = figure(RATES, channel_names[i], "packets/s", link_64);
		struct figure *trip = figure(TRIP, channel_trips[i], "ns", bare_trip);

		if (p->missing[i]) {
			figure_missing(rate, p->missing[i]);
			figure_missing(trip, p->missing[i]);
			continue;
		}
		figure_add(rate, channel_rate(&p->channels[i], CHANNEL_MS));
		channel_round_trips(&p->channels[i], ns, CHANNEL_TRIPS);
		figure_add(trip, bench_quantile(ns, CHANNEL_TRIPS, 0.5));
	}
}

static void links_add(struct link *link, struct link *jumbo, uint32_t *ns)
{
	static uint32_t scratch[TRIPS];

	figure_add(figure(RATES, bare_ring, "packets/s", NULL), bare_ring_rate(PACKETS));
	figure_add(figure(RATES, link_64, "packets/s", bare_ring), link_rate(link, PACKETS, 64, 0));
	figure_add(figure(RATES, "libdray, 64 B, all written and read", "packets/s", bare_ring), link_rate(link, PACKETS, 64, 1));
	figure_add(figure(RATES, link_1518, "packets/s", link_64), link_rate(link, PACKETS, 1518, 0));
	figure_add(figure(RATES, link_9000, "packets/s", link_64), link_rate(jumbo, PACKETS, 9000, 0));
	figure_add(figure(TRIP, "bare cache line", "ns", NULL), bare_line_round_trip(TRIPS));
	bare_ring_round_trips(scratch, TRIPS);
	figure_add(figure(TRIP, bare_trip, "ns", NULL), bench_quantile(scratch, TRIPS, 0.5));
	link_round_trips(link, ns, TRIPS);
	memcpy(scratch, ns, sizeof(scratch));
	figure_add(figure(TRIP, link_trip, "ns", bare_trip), bench_quantile(scratch, TRIPS, 0.5));
}

/* Of a figure to another of its group: at least what, or at most. */
static void judge(const char *group, const char *name, const char *of, const char *what, double target, int at_most)
{
	double value = figure_value(figure(group, name, "", NULL)), limit = figure_value(figure(group, of, "", NULL));
	char mark[48];

	snprintf(mark, sizeof(mark), "%s %.2f: %s", what, target,
		 (at_most ? value <= target * limit : value >= target * limit) ? "reached" : "NOT reached");
	figure_mark(figure(group, name, "", NULL), mark);
}

static void judge_all(void)
{
	judge(RATES, link_64, bare_ring, "target", 0.75, 0);
	judge(RATES, link_64, bare_ring, "floor", 0.6, 0);
	judge(RATES, link_1518, link_64, "target", 0.8, 0);
	judge(RATES, link_9000, link_64, "target", 0.8, 0);
	judge(TRIP, link_trip, bare_trip, "target", 1.6, 1);
}

void section_rates(const struct profile *profile)
{
	struct broker_options small = bench_shape(1500), large = bench_shape(9000);
	struct unchecked unchecked = unchecked_start();
	struct peers peers;
	struct link link, jumbo;
	uint32_t *ns = calloc((size_t)profile->rounds * TRIPS, sizeof(*ns));
	unsigned n = profile->rounds * TRIPS;

	if (!ns)
		exit(1);
	peers_open(&peers);
	link = link_open(&small, DRAY_MODE_BUSY);
	jumbo = link_open(&large, DRAY_MODE_BUSY);
	for (unsigned i = 0; i < profile->rounds; i++) {
		fprintf(stderr, "rates and round trips: round %u of %u\n", i + 1, profile->rounds);
		links_add(&link, &jumbo, &ns[(size_t)i * TRIPS]);
		unchecked_add(&unchecked);
		peers_add(&peers);
	}
	figure_quantile(figure(TRIP, "libdray, 64 B, p99", "ns", NULL), ns, n, 0.99);
	figure_quantile(figure(TRIP, "libdray, 64 B, p99.9", "ns", NULL), ns, n, 0.999);
	figure_quantile(figure(TRIP, "libdray, 64 B, p99.99", "ns", NULL), ns, n, 0.9999);
	judge_all();
	free(ns);
	link_close(&link);
	link_close(&jumbo);
	for (unsigned i = 0; i < CHANNELS; i++)
		if (!peers.missing[i])
			channel_close(&peers.channels[i]);
	if (unchecked.to)
		fclose(unchecked.to); /* ends it */
}
