/* SPDX-License-Identifier: Apache-2.0 */
/* dray-limit: what two cores of this machine can do at best, at this moment, as one line of JSON. */
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "bare.h"
#include "bench.h"

#define PACKETS 2000000u
#define TRIPS 4000u
#define MOST 1000000000u

static int usage(void)
{
	fprintf(stderr, "usage: dray-limit [--packets N] [--trips N]\n"
			"       dray-limit --version\n"
			"Measures, on the first two CPUs that it may use, a bare single-producer single-consumer ring whose 64-byte buffers one\n"
			"core writes and another reads, and the round trip of one cache line. The least of each are 200000 packets, 100 trips.\n"
			"exit: 0 done, 1 error, 2 usage\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"packets", required_argument, NULL, 'p'}, {"trips", required_argument, NULL, 't'},
		{"version", no_argument, NULL, 'v'}, {0}};
	unsigned long packets = PACKETS, trips = TRIPS;
	double ring, line;
	cpu_set_t set;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'p')
			packets = strtoul(optarg, NULL, 10);
		else if (c == 't')
			trips = strtoul(optarg, NULL, 10);
		else if (c == 'v')
			return printf("dray-limit %s (%s)\n", DRAY_VERSION, DRAY_DATE) < 0;
		else
			return usage();
	}
	if (optind != argc || packets < 200000 || packets > MOST || trips < 100 || trips > MOST)
		return usage();
	if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) < 2) {
		fprintf(stderr, "dray-limit: needs two CPUs: it measures what passes between them\n");
		return 1;
	}
	bench_begin();
	line = bare_line_round_trip((unsigned)trips);
	ring = bare_ring_rate(packets);
	printf("{\"dray_limit\": 1, \"ring_pps\": %.0f, \"line_ns\": %.1f, \"tsc_hz\": %.0f, \"slots\": %u, \"stride\": %u, \"burst\": %u}\n", ring, line,
	       1e9 / bench_ns_per_tick(), BARE_SLOTS, BARE_STRIDE, BARE_BURST);
	return 0;
}
