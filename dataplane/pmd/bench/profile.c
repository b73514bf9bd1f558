/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a pair goes, by perf. Its clock of the CPU works in virtual machines too, which have no counters of cycles. */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 4
#define MAX_SHARES 64

/* What a function takes; all of a program without symbols are one. */
struct share {
	char name[164];
	double percent;
};

static void add_share(struct share *shares, unsigned *n, const char *name, double percent)
{
	unsigned i = 0;

	while (i < *n && strcmp(shares[i].name, name) != 0)
		i++;
	if (i == MAX_SHARES)
		return;
	if (i == *n)
		snprintf(shares[(*n)++].name, sizeof(shares->name), "%s", name);
	shares[i].percent += percent;
}

static int by_percent(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->percent > y->percent ? -1 : x->percent < y->percent;
}

static unsigned read_report(const char *command, struct share *shares)
{
	char line[256], function[96], library[64], name[sizeof(shares->name)];
	FILE *f = popen(command, "r");
	unsigned n = 0;
	double percent;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %lf%% [%*c] %95s %63s", &percent, function, library) != 3)
			continue;
		snprintf(name, sizeof(name), "%s%s%s", strncmp(function, "0x", 2) ? function : "", strncmp(function, "0x", 2) ? " of " : "", library);
		add_share(shares, &n, name, percent);
	}
	if (f)
		pclose(f);
	qsort(shares, n, sizeof(*shares), by_percent);
	return n;
}

/* One process, while the pair runs. Returns how much of the text it took. */
static size_t profile(const struct place *place, const struct process *p, const char *name, char *text, size_t size)
{
	struct share shares[MAX_SHARES] = {0};
	char command[512];
	unsigned found;
	size_t n = 0;

	if (!p->pid)
		return 0;
	snprintf(command, sizeof(command),
		 "perf record -q -e cpu-clock -F 999 -p %d -o %s/perf.data -- sleep 0.5 >/dev/null 2>&1 && "
		 "perf report -q --stdio --no-children -s symbol,dso -i %s/perf.data 2>/dev/null",
		 process_innermost(p), place->directory, place->directory);
	found = read_report(command, shares);
	for (unsigned i = 0; i < found && i < SHOWN && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s %.0f %% %s", i ? "," : name, shares[i].percent, shares[i].name);
	if (found && n < size)
		n += (size_t)snprintf(text + n, size - n, "\n");
	return n < size ? n : size - 1;
}

void profile_pair(const struct place *place, struct pair *pair, char *text, size_t size)
{
	size_t n = 0;

	*text = 0;
	if (pair->why)
		return;
	if (place_late(place)) {
		snprintf(text, size, "    no profile: no time was left\n");
		return;
	}
	pair_resume(pair);
	n += profile(place, &pair->sender, "    time of the sender:", text + n, size - n);
	n += profile(place, &pair->receiver, "    time of the receiver:", text + n, size - n);
	n += profile(place, &pair->between, "    time of what is between:", text + n, size - n);
	pair_pause(pair);
	if (n == 0)
		snprintf(text, size, "    no profile: perf is not there (Debian: linux-perf), or may not be used\n");
}
