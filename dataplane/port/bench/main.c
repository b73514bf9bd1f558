/* SPDX-License-Identifier: Apache-2.0 */
/* dray-bench: libdray beside the physical limit of the moment and what it replaces, interleaved, as ratios. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bare.h"
#include "bench.h"
#include "figures.h"
#include "home.h"
#include "link.h"
#include "sections.h"

static int usage(void)
{
	fprintf(stderr, "usage: dray-bench [--quick] [--rounds N] [--kills N] [--json FILE] | --alone PACKETS | --serve\n"
			"  --quick    5 rounds and 35 kills of each kind, instead of 20 and 1000: a look, not a measurement\n"
			"  --kills N  how often an end is killed; 0: leave that out\n"
			"  --alone    both ends in one thread, no output: to be run under callgrind\n"
			"  --serve    measure a rate for each line on stdin: how the build without checks takes part\n"
			"exit: 0 done, 1 error, or a kill lost a packet or leaked a buffer, 2 usage\n");
	return 2;
}

/* A port for packets of this MTU; its stride is an odd number of lines. */
struct broker_options bench_shape(uint32_t mtu)
{
	struct broker_options o = {.mtu = mtu, .sample_shift = UNCHECKED ? SAMPLE_NONE : 0};

	o.geometry.ring_size = 2 * BARE_SLOTS;
	o.geometry.pkt_slots = BARE_SLOTS;
	o.geometry.pkt_stride = ((mtu + 128 + 64 + 63) / 64 | 1) * 64;
	return o;
}

static int count_alone(uint64_t packets)
{
	struct broker_options small = bench_shape(1500);
	struct link link = link_open(&small, DRAY_MODE_BUSY);

	bench_keep(link_alone(&link, packets));
	link_close(&link);
	return 0;
}

static int serve(void)
{
	struct broker_options small = bench_shape(1500);
	struct link link = link_open(&small, DRAY_MODE_BUSY);
	char line[32];

	while (fgets(line, sizeof(line), stdin)) {
		printf("%.0f\n", link_rate(&link, strtoull(line, NULL, 10), 64, 0));
		fflush(stdout);
	}
	link_close(&link);
	return 0;
}

static int measure(const struct profile *profile, const char *json)
{
	int ret = 0;

	printf("reference: bare ring of %u slots of %u B, burst %u; libdray: %u slots, burst %u, header: 16 B; rates: median windows of %u packets\n",
	       BARE_SLOTS, BARE_STRIDE, BARE_BURST, BARE_SLOTS, BARE_BURST, WINDOW);
	section_rates(profile);
	section_instructions();
	section_adaptive(profile);
	section_set_up(profile);
	if (profile->kills && section_kills(profile) < 0)
		ret = 1;
	figures_print();
	if (json && figures_write(json) < 0) {
		perror(json);
		return 1;
	}
	return ret;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"quick", no_argument, NULL, 'q'},	    {"rounds", required_argument, NULL, 'r'},
						{"kills", required_argument, NULL, 'k'},    {"json", required_argument, NULL, 'j'},
						{"alone", required_argument, NULL, 'a'}, {"serve", no_argument, NULL, 's'},
						{0}};
	struct profile profile = {.rounds = 20, .kills = 1000};
	const char *json = NULL;
	uint64_t alone = 0;
	int c, serving = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'q')
			profile = (struct profile){.rounds = 5, .kills = 35, .quick = 1};
		else if (c == 'r')
			profile.rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'k')
			profile.kills = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'j')
			json = optarg;
		else if (c == 'a')
			alone = strtoull(optarg, NULL, 10);
		else if (c == 's')
			serving = 1;
		else
			return usage();
	}
	if (optind != argc || profile.rounds < 1 || profile.rounds > 1000 || profile.kills > 100000)
		return usage();
	figures_look_at_machine(2);
	if (alone)
		return count_alone(alone); /* nothing that depends on time */
	bench_begin();
	return serving ? serve() : measure(&profile, json);
}
