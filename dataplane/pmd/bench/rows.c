/* SPDX-License-Identifier: Apache-2.0 */
/* The rows: how each is started, measured, and judged. */
#include "rows.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "figures.h"
#include "physical.h"
#include "profile.h"

#define SIZES 2
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const unsigned sizes[SIZES] = {64, 1518};

static const char *const rates[SIZES] = {"testpmd txonly to rxonly, 64 B, a core each", "testpmd txonly to rxonly, 1518 B, a core each"};
static const char natives[] = "native: one direction between two generators, without DPDK, a core each";
static const char round_trips[] = "round trip of one frame of 64 B between two DPDK applications, a core each, p50";
static const char switched[] = "Open vSwitch with DPDK on a core, the generator at both ends on another, both directions, 64 B";
static const char forwarded[] = "dray-vnf l2fwd over net_dray on a core, the generator at both ends on another, both directions, 64 B";
static const char forward_costs[] = "dray-vnf l2fwd over net_dray, cycles of a packet";
static const char costs[] = "CPU time of a frame, both ends and the application on one core";
/* Where copying ends to be the cheaper: the receiver does not look at what it gets, which is the worst case for a copy. */
static const char copies[] = "reception copied and in place, testpmd txonly to rxonly";

enum { DRAY, DRAY_COPY, DRAY_BOUND, MEMIF, MEMIF_ZERO, VHOST, VHOST_BACK, WAYS };

static const struct way ways[WAYS] = {
	[DRAY] = {"net_dray", "--vdev net_dray0,port=a,dir={d}", "--vdev net_dray0,port=b,dir={d}", "", 1, 0},
	[DRAY_COPY] = {"net_dray, rx=copy", "--vdev net_dray0,port=a,dir={d}", "--vdev net_dray0,port=b,dir={d},rx=copy", "", 1, 0},
	/* A data room that the link's buffers have: else none is bound. */
	[DRAY_BOUND] = {"net_dray, sent from its own pool", "--vdev net_dray0,port=a,dir={d} --mbuf-pool-ops-name dray",
			"--vdev net_dray0,port=b,dir={d}", "--mbuf-size=1664", 1, 0},
	[MEMIF] = {"net_memif", "--vdev net_memif0,role=client,socket-abstract=no,socket={d}/s",
		   "--vdev net_memif0,role=server,socket-abstract=no,socket={d}/s", "", 0, 0},
	[MEMIF_ZERO] = {"net_memif, zero-copy", "--vdev net_memif0,role=client,zero-copy=yes,socket-abstract=no,socket={d}/s",
			"--vdev net_memif0,role=server,socket-abstract=no,socket={d}/s", "", 0, 0},
	[VHOST] = {"net_virtio_user to net_vhost", "--vdev net_virtio_user0,path={d}/s,queues=1,mac=02:00:00:00:00:01",
		   "--vdev net_vhost0,iface={d}/s,queues=1", "", 0, 0},
	[VHOST_BACK] = {"net_vhost to net_virtio_user", "--vdev net_vhost0,iface={d}/s,queues=1,client=1",
			"--vdev net_virtio_user0,path={d}/s,queues=1,server=1,mac=02:00:00:00:00:01", "", 0, 1},
};

static const struct way null_way = {"net_null, sending alone", "--vdev net_null0", NULL, "", 0, 0};

static const unsigned copy_sizes[] = {64, 256};
static const struct way copy_ways[2] = {
	{"copied", "--vdev net_dray0,port=a,dir={d}", "--vdev net_dray0,port=b,dir={d},rx=copy", "", 1, 0},
	{"in place", "--vdev net_dray0,port=a,dir={d}", "--vdev net_dray0,port=b,dir={d},rx-copy-max=0", "", 1, 0}};

/* A pair and its figure of each size. */
struct row {
	struct pair pair;
	struct figure *figure[SIZES];
};

/* What the generator does without a link: it fills and sums up each packet. */
enum { CEILINGS = 3 };

static const char *const ceiling_names[CEILINGS] = {"draygen sending to a null port, 64 B", "draygen sending to a null port, 1518 B", "draygen receiving from a null port, 98 B"};
static const char *const ceiling_roles[CEILINGS] = {"send --rate max --size 64", "send --rate max --size 1518", "sink"};

static struct place *place;
static struct row null_row, rows[WAYS], copy_rows[2], trips[WAYS], native[SIZES], ceilings[CEILINGS], switches[2], forwards[2];
static struct figure *forward_cycles[2];

/* Names are unique over all groups: a figure is a ratio to another by its name. */
static const char *name_of(const char *what, unsigned size)
{
	char *name = malloc(96);

	if (!name)
		exit(1);
	snprintf(name, 96, "%s, %u B", what, size);
	return name;
}

static const char *trip_name(const char *way)
{
	char what[64];

	snprintf(what, sizeof(what), "%s, round trip", way);
	return name_of(what, 64);
}

/* A program beside this one. */
static void beside(const char *name, char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - strlen(name) - 1);

	path[n < 0 ? 0 : n] = 0;
	strcpy(strrchr(path, '/') ? strrchr(path, '/') + 1 : path, name);
}

/* A sample, or why there is none: then the figure has none at all, since rounds are compared with each other. */
static void add(struct figure *f, const struct pair *pair, double sample)
{
	if (sample > 0)
		figure_add(f, sample);
	else
		figure_missing(f, pair->why ? pair->why : "nothing was counted");
}

/* The pair is not started, since a program is missing, or time. */
static bool lacks(struct pair *pair, const char *program, const char *why)
{
	if (!program)
		pair->why = why;
	else if (place_late(place))
		pair->why = "no time was left to start it";
	return pair->why != NULL;
}

static void start_testpmds(void)
{
	for (unsigned i = 0; i < SIZES; i++) {
		null_row.figure[i] = figure(rates[i], name_of(null_way.name, sizes[i]), "packets/s", NULL);
		for (unsigned k = 0; k < WAYS; k++)
			rows[k].figure[i] = figure(rates[i], name_of(ways[k].name, sizes[i]), "packets/s", name_of(null_way.name, sizes[i]));
	}
	for (unsigned i = 0; i < COUNT(copy_sizes); i++)
		for (unsigned k = 0; k < 2; k++)
			copy_rows[k].figure[i] = figure(copies, name_of(copy_ways[k].name, copy_sizes[i]), "packets/s",
							k ? name_of(copy_ways[0].name, copy_sizes[i]) : NULL);
	if (!lacks(&null_row.pair, "dpdk-testpmd", NULL))
		testpmd_start(place, &null_way, &null_row.pair);
	for (unsigned k = 0; k < WAYS; k++)
		if (!lacks(&rows[k].pair, "dpdk-testpmd", NULL))
			testpmd_start(place, &ways[k], &rows[k].pair);
	for (unsigned k = 0; k < 2; k++)
		if (!lacks(&copy_rows[k].pair, "dpdk-testpmd", NULL))
			testpmd_start(place, &copy_ways[k], &copy_rows[k].pair);
}

static const char no_generator[] = "no draygen-dpdk";

static void start_trips(void)
{
	for (unsigned k = 0; k < WAYS; k++) {
		trips[k].figure[0] = figure(round_trips, trip_name(ways[k].name), "ns", physical_line);
		if (!lacks(&trips[k].pair, place->trips, NULL))
			trips_start(place, &ways[k], &trips[k].pair);
	}
}

static void start_generators(void)
{
	for (unsigned i = 0; i < CEILINGS; i++) {
		ceilings[i].figure[0] = figure(natives, ceiling_names[i], "packets/s", NULL);
		if (!lacks(&ceilings[i].pair, place->generator, no_generator))
			ceiling_start(place, ceiling_roles[i], &ceilings[i].pair);
	}
	for (unsigned i = 0; i < SIZES; i++) {
		native[i].figure[0] = figure(natives, name_of("draygen", sizes[i]), "packets/s", ceiling_names[i]);
		if (!lacks(&native[i].pair, place->generator, no_generator))
			native_start(place, sizes[i], &native[i].pair);
	}
}

static void start_between(void)
{
	static const char *const kinds[2] = {"dray", "vhost"}, *const names[2] = {"net_dray ports", "vhost-user ports"},
				 *const forms[2] = {"a plain process", "in a container"};

	for (unsigned i = 0; i < 2; i++) {
		switches[i].figure[0] = figure(switched, names[i], "packets/s", NULL);
		if (!lacks(&switches[i].pair, place->generator, no_generator))
			switch_start(place, kinds[i], 64, &switches[i].pair);
		forwards[i].figure[0] = figure(forwarded, forms[i], "packets/s", NULL);
		forward_cycles[i] = figure(forward_costs, name_of(forms[i], 64), "cycles", NULL);
		if (!lacks(&forwards[i].pair, place->generator, no_generator) && !lacks(&forwards[i].pair, place->vnf, "no dray-vnf"))
			forward_start(place, (int)i, 64, &forwards[i].pair);
	}
}

void rows_start(struct place *where, const char *bare)
{
	place = where;
	beside("dray-pmd-trips", place->trips, sizeof(place->trips));
	start_testpmds();
	start_trips();
	start_generators();
	start_between();
	physical_start(place, bare, natives);
}

/* What dray-pmd-cost measures. */
static void add_costs(void)
{
	char command[PATH_MAX], line[160];
	FILE *f;

	beside("dray-pmd-cost 2>&1", command, sizeof(command));
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		char *tab = strchr(line, '\t');

		if (!tab)
			continue; /* EAL talks, too */
		*tab = 0;
		figure_add(figure(costs, strdup(line), "ns", NULL), strtod(tab + 1, NULL));
	}
	if (f)
		pclose(f);
}

/* Once it is late nothing is measured: the round is not finished. */
static bool late_for(struct figure *f)
{
	if (place_late(place) && figure_value(f) == 0)
		figure_missing(f, "no time was left");
	return place_late(place);
}

/* Of testpmd, at one of two sizes. */
static void take_rate(struct row *r, unsigned i, unsigned size)
{
	if (!late_for(r->figure[i]))
		add(r->figure[i], &r->pair, testpmd_rate(place, &r->pair, size));
}

static void take(struct row *r, double (*measure)(const struct place *, struct pair *))
{
	if (!late_for(r->figure[0]))
		add(r->figure[0], &r->pair, measure(place, &r->pair));
}

static void take_forward(unsigned i)
{
	struct pair *pair = &forwards[i].pair;
	double cycles = 0;

	if (late_for(forwards[i].figure[0]) | late_for(forward_cycles[i]))
		return;
	add(forwards[i].figure[0], pair, forward_rate(place, pair, &cycles));
	add(forward_cycles[i], pair, cycles);
}

static void measure_testpmds(unsigned round)
{
	for (unsigned i = 0; i < SIZES; i++) {
		take_rate(&null_row, i, sizes[i]);
		for (unsigned k = 0; k < WAYS; k++)
			take_rate(&rows[(k + round) % WAYS], i, sizes[i]);
	}
	for (unsigned i = 0; i < 2 * COUNT(copy_sizes); i++)
		take_rate(&copy_rows[(i + round) % 2], i / 2, copy_sizes[i / 2]);
}

bool rows_measure(unsigned round)
{
	if (round == 0)
		add_costs(); /* once: it takes seconds, and does not depend on the distance of cores */
	physical_measure();
	measure_testpmds(round);
	for (unsigned i = 0; i < CEILINGS; i++)
		take(&ceilings[i], generator_rate);
	for (unsigned i = 0; i < SIZES; i++)
		take(&native[i], generator_rate);
	for (unsigned k = 0; k < WAYS; k++)
		take(&trips[(k + round) % WAYS], trips_p50);
	for (unsigned i = 0; i < 2; i++) {
		take(&switches[(i + round) % 2], generator_rate);
		take_forward((i + round) % 2);
	}
	return !place_late(place);
}

/* The best of those that were measured to the end; NULL: none was. */
static struct figure *best(struct figure *const *figures, unsigned n, bool least)
{
	struct figure *found = NULL;

	for (unsigned i = 0; i < n; i++) {
		double value = figure_value(figures[i]);

		if (figure_measured(figures[i]) && (!found || (least ? value < figure_value(found) : value > figure_value(found))))
			found = figures[i];
	}
	return found;
}

static struct figure *best_row(const struct row *r, unsigned from, unsigned to, unsigned size, bool least)
{
	struct figure *f[WAYS];
	unsigned n = 0;

	for (unsigned i = from; i <= to; i++)
		f[n++] = r[i].figure[size];
	return best(f, n, least);
}

static void set_targets(void)
{
	for (unsigned i = 0; i < SIZES; i++) {
		struct figure *peer = best_row(rows, MEMIF, VHOST_BACK, i, false);

		figure_target(rows[DRAY].figure[i], peer, "the best of memif and vhost-user", 1, false);
		if (i == 0)
			figure_target(rows[DRAY].figure[i], peer, "the same, hoped for", 1.5, false);
		figure_target(native[i].figure[0], peer, "the best of memif and vhost-user", i ? 4 : 3, false);
	}
	figure_target(physical_libdray(), best_row(rows, MEMIF, VHOST_BACK, 0, false), "the best of memif and vhost-user", 3, false);
	figure_target(rows[DRAY_BOUND].figure[0], null_row.figure[0], "net_null", 0.6, false);
	figure_target(trips[DRAY].figure[0], best_row(trips, MEMIF, MEMIF_ZERO, 0, true), "memif's round trip", 0.5, true);
	figure_target(trips[DRAY].figure[0], best_row(trips, VHOST, VHOST_BACK, 0, true), "vhost-user's round trip", 0.333, true);
	figure_target(switches[0].figure[0], switches[1].figure[0], "vhost-user ports", 1, false);
	figure_target(forwards[1].figure[0], forwards[0].figure[0], "the plain process's rate", 0.9, false);
	figure_target(forward_cycles[1], forward_cycles[0], "the plain process's cycles", 1.1, true);
}

/* What no driver can do better than: a line that goes to and fro. */
static void explain_trip(void)
{
	const double line = figure_value(physical_line_figure()), trip = figure_value(trips[DRAY].figure[0]);
	char text[900];
	size_t n;

	if (figure_reached(trips[DRAY].figure[0]) || trips[DRAY].pair.why)
		return;
	n = (size_t)snprintf(text, sizeof(text), "    a round trip of %.0f ns is %.1f of a cache line to and fro, which takes %.0f; a frame takes two lines each way, one after the other\n", trip,
			     line > 0 ? trip / line : NAN, line);
	profile_pair(place, &trips[DRAY].pair, text + n, sizeof(text) - n);
	figure_limited(trips[DRAY].figure[0], text);
}

/* The generator's own work beside what the link takes. */
static void explain_native(unsigned i)
{
	const double sends = figure_value(ceilings[i].figure[0]), receives = figure_value(ceilings[SIZES].figure[0]), link = figure_value(native[i].figure[0]);
	char text[900];
	size_t n;

	if (figure_reached(native[i].figure[0]) || native[i].pair.why)
		return;
	n = (size_t)snprintf(text, sizeof(text), "    the generator stamps, sums up and judges each packet: without a link it sends %.1f M/s and receives %.1f; this is %.0f %% of the lesser\n",
			     sends / 1e6, receives / 1e6, 100 * link / fmin(sends, receives));
	profile_pair(place, &native[i].pair, text + n, sizeof(text) - n);
	figure_limited(native[i].figure[0], text);
}

static void explain(struct row *r, unsigned size)
{
	char text[900];

	if (figure_reached(r->figure[size]) || r->pair.why)
		return;
	if (r >= rows && r < rows + WAYS && !place_late(place) && testpmd_rate(place, &r->pair, sizes[size]) == 0) /* it gets that size, too */
		return;
	profile_pair(place, &r->pair, text, sizeof(text));
	figure_limited(r->figure[size], text);
}

void rows_judge(bool profiles)
{
	set_targets();
	if (!profiles)
		return;
	for (unsigned i = 0; i < SIZES; i++) {
		explain(&rows[DRAY], i);
		explain_native(i);
	}
	explain(&rows[DRAY_BOUND], 0);
	explain_trip();
	explain(&switches[0], 0);
	explain(&forwards[1], 0);
}

void rows_interrupted(void)
{
	pair_end_container(&forwards[1].pair);
}

static void end_all(struct row *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pair_end(&r[i].pair);
}

void rows_end(void)
{
	physical_end();
	end_all(&null_row, 1);
	end_all(rows, WAYS);
	end_all(copy_rows, 2);
	end_all(trips, WAYS);
	end_all(native, SIZES);
	end_all(ceilings, CEILINGS);
	end_all(switches, 2);
	end_all(forwards, 2);
}
