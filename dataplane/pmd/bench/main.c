/* SPDX-License-Identifier: Apache-2.0 */
/* dray-pmd-bench: net_dray beside DPDK's own ways between two applications, in turns, as ratios. */
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "figures.h"
#include "pairs.h"

#define SIZES 2
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct place place = {.seconds = 4};

static const unsigned sizes[SIZES] = {64, 1518};
static const char *const rates[SIZES] = {"testpmd txonly to rxonly, 64 B, a core each", "testpmd txonly to rxonly, 1518 B, a core each"};
static const char round_trips[] = "round trip of 64 B between two generators, p50";

enum { DRAY, DRAY_COPY, DRAY_BOUND, MEMIF, MEMIF_ZERO, VHOST, VHOST_BACK, WAYS };

static const struct way ways[WAYS] = {
	[DRAY] = {"net_dray", "--vdev net_dray0,port=a,dir={d}", "--vdev net_dray0,port=b,dir={d}", "", 1},
	[DRAY_COPY] = {"net_dray, rx=copy", "--vdev net_dray0,port=a,dir={d}", "--vdev net_dray0,port=b,dir={d},rx=copy", "", 1},
	/* A data room that the link's buffers have: else none is bound. */
	[DRAY_BOUND] = {"net_dray, sent from its own pool", "--vdev net_dray0,port=a,dir={d} --mbuf-pool-ops-name dray",
			"--vdev net_dray0,port=b,dir={d}", "--mbuf-size=1664", 1},
	[MEMIF] = {"net_memif", "--vdev net_memif0,role=client,socket-abstract=no,socket={d}/s",
		   "--vdev net_memif0,role=server,socket-abstract=no,socket={d}/s", "", 0},
	[MEMIF_ZERO] = {"net_memif, zero-copy", "--vdev net_memif0,role=client,zero-copy=yes,socket-abstract=no,socket={d}/s",
			"--vdev net_memif0,role=server,socket-abstract=no,socket={d}/s", "", 0},
	[VHOST] = {"net_virtio_user to net_vhost", "--vdev net_virtio_user0,path={d}/s,queues=1,mac=02:00:00:00:00:01",
		   "--vdev net_vhost0,iface={d}/s,queues=1", "", 0},
	[VHOST_BACK] = {"net_vhost to net_virtio_user", "--vdev net_vhost0,iface={d}/s,queues=1,client=1",
			"--vdev net_virtio_user0,path={d}/s,queues=1,server=1,mac=02:00:00:00:00:01", "", 0, 1},
};

/* Where copying ends to be the cheaper: the receiver does not look at what it gets, which is the worst case for a copy. */
static const char copies[] = "reception copied and in place, testpmd txonly to rxonly";
static const unsigned copy_sizes[] = {64, 256};
static const struct way copied = {"copied", "--vdev net_dray0,port=a,dir={d}", "--vdev net_dray0,port=b,dir={d},rx=copy", "", 1, 0},
			in_place = {"in place", "--vdev net_dray0,port=a,dir={d}", "--vdev net_dray0,port=b,dir={d},rx-copy-max=0", "", 1, 0};

/* Names are unique over all groups: a figure is a ratio to another by its name. */
static const char *name_of(const char *what, unsigned size)
{
	char *name = malloc(96);

	if (!name)
		exit(1);
	snprintf(name, 96, "%s, %u B", what, size);
	return name;
}

static struct figure *rate_figures[SIZES][WAYS], *null_figures[SIZES], *trip_figures[WAYS], *copy_figures[COUNT(copy_sizes)][2];

static void name_figures(void)
{
	for (unsigned i = 0; i < SIZES; i++) {
		const char *null = name_of("net_null, sending alone", sizes[i]);

		null_figures[i] = figure(rates[i], null, "packets/s", NULL);
		for (unsigned k = 0; k < WAYS; k++)
			rate_figures[i][k] = figure(rates[i], name_of(ways[k].name, sizes[i]), "packets/s", null);
	}
	for (unsigned i = 0; i < COUNT(copy_sizes); i++) {
		const char *first = name_of(copied.name, copy_sizes[i]);

		copy_figures[i][0] = figure(copies, first, "packets/s", NULL);
		copy_figures[i][1] = figure(copies, name_of(in_place.name, copy_sizes[i]), "packets/s", first);
	}
	for (unsigned k = 0; k < WAYS; k++) {
		trip_figures[k] = figure(round_trips, name_of(ways[k].name, 64), "ns", NULL);
		if (!place.generator)
			figure_missing(trip_figures[k], "no draygen-dpdk");
	}
}

/* What dray-pmd-cost, beside this program, measures. */
static void add_costs(void)
{
	char command[PATH_MAX + 32], line[160];
	ssize_t n = readlink("/proc/self/exe", command, PATH_MAX - 1);
	FILE *f;

	if (n < 0)
		return;
	command[n] = 0;
	strcpy(strrchr(command, '/'), "/dray-pmd-cost 2>&1");
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		char *tab = strchr(line, '\t');

		if (!tab)
			continue; /* EAL talks, too */
		*tab = 0;
		figure_add(figure("CPU time of a frame, both ends and the application on one core", strdup(line), "ns", NULL), strtod(tab + 1, NULL));
	}
	if (f)
		pclose(f);
}

/* A sample, or why there is none: then the figure has none at all, since rounds are compared with each other. */
static void add(struct figure *f, double sample)
{
	if (sample > 0)
		figure_add(f, sample);
	else
		figure_missing(f, place.why ? place.why : "nothing was counted");
	place.why = NULL;
}

/* All ways once, begun with another each time. */
static void round_of(unsigned round)
{
	add_costs();
	for (unsigned i = 0; i < SIZES; i++) {
		add(null_figures[i], null_rate(&place, sizes[i]));
		for (unsigned k = 0; k < WAYS; k++) {
			unsigned way = (k + round) % WAYS;

			add(rate_figures[i][way], pair_rate(&place, &ways[way], sizes[i]));
		}
	}
	for (unsigned i = 0; i < 2 * COUNT(copy_sizes); i++) {
		unsigned way = (i + round) % 2;

		add(copy_figures[i / 2][way], pair_rate(&place, way ? &in_place : &copied, copy_sizes[i / 2]));
	}
	for (unsigned k = 0; k < WAYS && place.generator; k++) {
		unsigned way = (k + round) % WAYS;

		add(trip_figures[way], pair_round_trip(&place, &ways[way]));
	}
}

static void mark(struct figure *f, const char *what, double value, double target, int at_most)
{
	char text[96];

	if (isnan(value))
		return;
	snprintf(text, sizeof(text), "%.2f of %s, target %.2f: %s", value, what, target,
		 (at_most ? value <= target : value >= target) ? "reached" : "NOT reached");
	figure_mark(f, text);
}

static double best(struct figure *const *figures, const unsigned *which, unsigned n, int least)
{
	double found = NAN;

	for (unsigned i = 0; i < n; i++) {
		double value = figure_value(figures[which[i]]);

		if (value > 0 && (isnan(found) || (least ? value < found : value > found)))
			found = value;
	}
	return found;
}

static void judge(void)
{
	static const unsigned peers[] = {MEMIF, MEMIF_ZERO, VHOST, VHOST_BACK}, memif[] = {MEMIF, MEMIF_ZERO}, vhost[] = {VHOST, VHOST_BACK};

	for (unsigned i = 0; i < SIZES; i++) {
		double dray = figure_value(rate_figures[i][DRAY]), peer = best(rate_figures[i], peers, COUNT(peers), 0);

		if (dray > 0)
			mark(rate_figures[i][DRAY], "the best of DPDK's own", dray / peer, i == 0 ? 1.5 : 1, 0);
	}
	if (figure_value(rate_figures[0][DRAY_BOUND]) > 0 && figure_value(null_figures[0]) > 0)
		mark(rate_figures[0][DRAY_BOUND], "net_null", figure_value(rate_figures[0][DRAY_BOUND]) / figure_value(null_figures[0]), 0.6, 0);
	if (figure_value(trip_figures[DRAY]) > 0) {
		double dray = figure_value(trip_figures[DRAY]);

		mark(trip_figures[DRAY], "memif's", dray / best(trip_figures, memif, COUNT(memif), 1), 0.5, 1);
		mark(trip_figures[DRAY], "vhost-user's", dray / best(trip_figures, vhost, COUNT(vhost), 1), 0.33, 1);
	}
}

static void look_at_machine(void)
{
	double load = 0;
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	if (CPU_COUNT(&set) < 2)
		figures_mark("oversubscribed");
	if (getloadavg(&load, 1) == 1 && load > 0.5)
		figures_mark("busy machine");
}

/* Put the figures behind those that are in the file, which is an array. */
static int append(const char *path)
{
	char temporary[512], *old = NULL, *new = NULL, *end;
	size_t old_size = 0, new_size = 0;
	FILE *f;
	int ret = -1;

	snprintf(temporary, sizeof(temporary), "%s.new", path);
	if (figures_write(temporary) < 0)
		return -1;
	f = fopen(path, "r");
	if (!f)
		return rename(temporary, path);
	if (getdelim(&old, &old_size, 0, f) < 0 || !(end = strrchr(old, ']'))) {
		fprintf(stderr, "bench: %s is no array: it is written anew\n", path);
		fclose(f);
		free(old);
		return rename(temporary, path);
	}
	fclose(f);
	while (end > old && (end[-1] == '\n' || end[-1] == ' '))
		end--;
	*end = 0;
	f = fopen(temporary, "r");
	if (f && getdelim(&new, &new_size, 0, f) > 0 && *new == '[') {
		fclose(f);
		f = fopen(temporary, "w");
		if (f && fprintf(f, "%s%s%s", old, end[-1] == '[' ? "" : ",", new + 1) > 0 && fclose(f) == 0)
			ret = rename(temporary, path);
	}
	free(old);
	free(new);
	return ret;
}

/* What was started dies with this process. */
static void interrupted(int signal)
{
	place_end(&place);
	_exit(128 + signal);
}

static int usage(void)
{
	fprintf(stderr, "usage: dray-pmd-bench --driver FILE [--generator FILE] [--quick] [--rounds N] [--json FILE]\n"
			"  --driver FILE     librte_net_dray.so\n"
			"  --generator FILE  draygen-dpdk, for round trips; without it they are left out\n"
			"  --quick           one round of short trials: a look, not a measurement\n"
			"  --json FILE       append the figures to those in the file\n"
			"exit: 0 done, 1 error, 2 usage\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"driver", required_argument, NULL, 'd'}, {"generator", required_argument, NULL, 'g'},
						{"quick", no_argument, NULL, 'q'},	  {"rounds", required_argument, NULL, 'r'},
						{"json", required_argument, NULL, 'j'},	  {0}};
	unsigned rounds = 5;
	const char *json = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			place.driver = realpath(optarg, NULL);
		else if (c == 'g')
			place.generator = access(optarg, X_OK) == 0 ? realpath(optarg, NULL) : NULL;
		else if (c == 'q')
			rounds = 1, place.seconds = 2;
		else if (c == 'r')
			rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'j')
			json = optarg;
		else
			return usage();
	}
	if (optind != argc || !place.driver || rounds < 1 || rounds > 1000)
		return usage();
	look_at_machine();
	place_begin(&place);
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	name_figures();
	for (unsigned i = 0; i < rounds; i++) {
		fprintf(stderr, "net_dray beside memif, vhost-user and the null device: round %u of %u\n", i + 1, rounds);
		round_of(i);
	}
	judge();
	place_end(&place);
	figures_print();
	if (json && append(json) < 0) {
		perror(json);
		return 1;
	}
	return 0;
}
