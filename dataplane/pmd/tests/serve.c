/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One link between the ports "a" and "b" of a directory, for programs that stand alone, until stdin
 * ends.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "broker.h"

static int usage(void)
{
	fprintf(stderr, "usage: serve [--queues N] [--mtu BYTES] [--slots N] DIRECTORY\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"queues", required_argument, NULL, 'q'},
						{"mtu", required_argument, NULL, 'm'},
						{"slots", required_argument, NULL, 's'},
						{0}};
	/* As a chain's broker has it by default. */
	struct broker_options o = {.geometry = {.ring_size = 512, .pkt_slots = 512}};
	struct broker *broker;
	char c;
	int n;

	while ((n = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (n == 'q')
			o.queues = (uint32_t)strtoul(optarg, NULL, 10);
		else if (n == 'm')
			o.mtu = (uint32_t)strtoul(optarg, NULL, 10);
		else if (n == 's')
			o.geometry.pkt_slots = o.geometry.ring_size =
				(uint32_t)strtoul(optarg, NULL, 10);
		else
			return usage();
	}
	if (optind + 1 != argc)
		return usage();
	if (o.mtu)
		o.geometry.pkt_stride = ((o.mtu + 18 + 128 + 63) / 64 | 1) * 64;
	o.directory = argv[optind];
	broker = broker_start(&o);
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	broker_stop(broker);
	return 0;
}
