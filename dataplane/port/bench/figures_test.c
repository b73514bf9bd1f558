/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: what counts as measured, and of how many rounds an outcome is sure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "figures.h"
#include "test.h"

static struct figure *in_rounds(const char *name, unsigned rounds, double sample)
{
	struct figure *f = figure("group", name, "ns", NULL);

	for (unsigned i = 0; i < rounds; i++)
		figure_add(f, sample);
	return f;
}

/* One that fails after a while keeps its value, and is measured no more. */
static void missing(void)
{
	struct figure *f = figure("group", "fails", "ns", NULL);

	CHECK(!figure_measured(f));
	figure_add(f, 5);
	CHECK(figure_measured(f));
	figure_missing(f, "it has ended");
	CHECK(!figure_measured(f));
	CHECK(figure_value(f) > 0);
}

/* Whether the figures, as they are written, have a text in them. */
static bool written(const char *text)
{
	char path[] = "/tmp/dray-figures-XXXXXX", all[8192] = "";
	int fd = mkstemp(path);
	ssize_t n;

	CHECK(fd >= 0);
	CHECK(figures_write(path) == 0);
	n = read(fd, all, sizeof(all) - 1);
	CHECK(n > 0);
	close(fd);
	unlink(path);
	return strstr(all, text) != NULL;
}

static void outcomes(void)
{
	figure_target(in_rounds("five", 5, 2), in_rounds("five of", 5, 1), "five of", 1, false);
	CHECK(written("\"outcome\": \"reached, in too few rounds to be sure of\""));
	CHECK(!written("\"outcome\": \"reached\""));
	figure_target(in_rounds("six", 6, 2), in_rounds("six of", 6, 1), "six of", 1, false);
	CHECK(written("\"outcome\": \"reached\""));
}

int main(void)
{
	missing();
	outcomes();
	return 0;
}
