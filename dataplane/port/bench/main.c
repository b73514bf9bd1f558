/* SPDX-License-Identifier: Apache-2.0 */
/* dray-bench: libdray beside the physical limit of the moment, interleaved, as ratios. */
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "bare.h"
#include "bench.h"
#include "link.h"

#define PACKETS 1000000u
#define ROUND_TRIPS 10000u
#define MAX_ROUNDS 1000

enum figure { BARE_RING, LINK_64, LINK_ALL, LINK_1518, LINK_9000, BARE_LINE, BARE_TRIP, LINK_TRIP, FIGURES };

static const struct {
	const char *name, *unit;
	int limit; /* the figure that it is a ratio to; -1: none */
} figures[FIGURES] = {
	[BARE_RING] = {"bare ring, 64 B written and read", "packets/s", -1},
	[LINK_64] = {"libdray, 64 B, header written and read", "packets/s", BARE_RING},
	[LINK_ALL] = {"libdray, 64 B, all written and read", "packets/s", BARE_RING},
	[LINK_1518] = {"libdray, 1518 B, header written and read", "packets/s", LINK_64},
	[LINK_9000] = {"libdray, 9000 B, header written and read", "packets/s", LINK_64},
	[BARE_LINE] = {"bare cache line, round trip p50", "ns", -1},
	[BARE_TRIP] = {"bare ring, 64 B round trip p50", "ns", -1},
	[LINK_TRIP] = {"libdray, 64 B round trip p50", "ns", BARE_TRIP},
};

static double samples[FIGURES][MAX_ROUNDS];
static uint32_t *trips; /* of libdray, all rounds */

/* A port for packets of 1518 B, or one for jumbo frames: strides are odd numbers of lines. */
static struct broker_options shape(uint32_t mtu)
{
	struct broker_options o = {.mtu = mtu};

	o.geometry.ring_size = 512;
	o.geometry.pkt_slots = 256;
	o.geometry.pkt_stride = ((mtu + 128 + 64 + 63) / 64 | 1) * 64;
	return o;
}

static void run_round(struct link *link, struct link *jumbo, unsigned round)
{
	uint32_t *ns = &trips[(size_t)round * ROUND_TRIPS];
	static uint32_t scratch[ROUND_TRIPS];

	samples[BARE_RING][round] = bare_ring_rate(PACKETS);
	samples[LINK_64][round] = link_rate(link, PACKETS, 64, 0);
	samples[LINK_ALL][round] = link_rate(link, PACKETS, 64, 1);
	samples[LINK_1518][round] = link_rate(link, PACKETS, 1518, 0);
	samples[LINK_9000][round] = link_rate(jumbo, PACKETS, 9000, 0);
	samples[BARE_LINE][round] = bare_line_round_trip(ROUND_TRIPS);
	bare_ring_round_trips(scratch, ROUND_TRIPS);
	samples[BARE_TRIP][round] = bench_quantile(scratch, ROUND_TRIPS, 0.5);
	link_round_trips(link, ns, ROUND_TRIPS);
	samples[LINK_TRIP][round] = bench_quantile(ns, ROUND_TRIPS, 0.5);
}

struct summary {
	double median, low, high;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median, and the order statistics that hold it with 95 %. */
static struct summary summarise(const double *values, unsigned n)
{
	double sorted[MAX_ROUNDS];
	int off = (int)ceil(0.98 * sqrt(n)), low = (int)n / 2 - off, high = ((int)n - 1) / 2 + off;

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), compare);
	return (struct summary){
		(sorted[n / 2] + sorted[(n - 1) / 2]) / 2,
		sorted[low < 0 ? 0 : low],
		sorted[high >= (int)n ? (int)n - 1 : high],
	};
}

static struct summary ratio(enum figure f, unsigned n)
{
	double r[MAX_ROUNDS];

	for (unsigned i = 0; i < n; i++)
		r[i] = samples[f][i] / samples[figures[f].limit][i];
	return summarise(r, n);
}

static const char *marks = "";

/* Before the threads are pinned, and before they are the load. */
static void look_at_machine(void)
{
	double load = 0;
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	if (CPU_COUNT(&set) < 2)
		marks = "oversubscribed";
	else if (getloadavg(&load, 1) == 1 && load > 0.5)
		marks = "busy machine";
}

static void print_table(unsigned rounds)
{
	printf("medians of %u interleaved rounds, [95 %% interval]; bare ring: %u slots of %u B, burst %u; header: 16 B; marks: %s\n", rounds, BARE_SLOTS,
	       BARE_STRIDE, BARE_BURST, *marks ? marks : "none");
	for (unsigned f = 0; f < FIGURES; f++) {
		struct summary s = summarise(samples[f], rounds);
		double unit = figures[f].unit[0] == 'p' ? 1e6 : 1;

		printf("%-42s %8.1f %s [%.1f, %.1f]", figures[f].name, s.median / unit, unit > 1 ? "M/s" : "ns", s.low / unit, s.high / unit);
		if (figures[f].limit >= 0) {
			s = ratio(f, rounds);
			printf("  ratio %.2f [%.2f, %.2f] to: %s", s.median, s.low, s.high, figures[figures[f].limit].name);
		}
		printf("\n");
	}
}

static void print_tail(unsigned rounds)
{
	unsigned n = rounds * ROUND_TRIPS;

	printf("libdray, 64 B round trip: p99 %.0f ns, p99.9 %.0f ns", bench_quantile(trips, n, 0.99), bench_quantile(trips, n, 0.999));
	if (n >= 100000)
		printf(", p99.99 %.0f ns", bench_quantile(trips, n, 0.9999));
	printf(" (n = %u)\n", n);
}

static int write_json(const char *path, unsigned rounds)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return -1;
	fprintf(f, "[\n");
	for (unsigned i = 0; i < FIGURES; i++) {
		struct summary s = summarise(samples[i], rounds);

		fprintf(f, "  {\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"low\": %.6g, \"high\": %.6g, \"rounds\": %u, \"marks\": \"%s\"",
			figures[i].name, s.median, figures[i].unit, s.low, s.high, rounds, marks);
		if (figures[i].limit >= 0) {
			s = ratio(i, rounds);
			fprintf(f, ", \"ratio\": %.4g, \"ratio_low\": %.4g, \"ratio_high\": %.4g, \"ratio_to\": \"%s\"", s.median, s.low,
				s.high, figures[figures[i].limit].name);
		}
		fprintf(f, "}%s\n", i + 1 < FIGURES ? "," : "");
	}
	fprintf(f, "]\n");
	return fclose(f);
}

static int usage(void)
{
	fprintf(stderr, "usage: dray-bench [--rounds N] [--json FILE] | --alone PACKETS\n"
			"  --alone  both ends in one thread, no output: to be run under callgrind\n"
			"exit: 0 done, 1 error, 2 usage\n");
	return 2;
}

static int compare_all(unsigned rounds, const char *json)
{
	struct broker_options small = shape(1500), large = shape(9000);
	struct link link = link_open(&small, DRAY_MODE_BUSY), jumbo = link_open(&large, DRAY_MODE_BUSY);
	int ret = 1;

	trips = calloc((size_t)rounds * ROUND_TRIPS, sizeof(*trips));
	if (trips) {
		for (unsigned i = 0; i < rounds; i++)
			run_round(&link, &jumbo, i);
		print_table(rounds);
		print_tail(rounds);
		ret = json && write_json(json, rounds) ? 1 : 0;
	}
	free(trips);
	link_close(&link);
	link_close(&jumbo);
	return ret;
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
	static const struct option options[] = {
		{"rounds", required_argument, NULL, 'r'}, {"json", required_argument, NULL, 'j'}, {"alone", required_argument, NULL, 'a'}, {0}};
	unsigned rounds = 20;
	const char *json = NULL;
	uint64_t alone = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'r')
			rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'j')
			json = optarg;
		else if (c == 'a')
			alone = strtoull(optarg, NULL, 10);
		else
			return usage();
	}
	if (optind != argc || rounds < 1 || rounds > MAX_ROUNDS)
		return usage();
	look_at_machine();
	bench_begin();
	return alone ? count_alone(alone) : compare_all(rounds, json);
}
