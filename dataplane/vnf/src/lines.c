/* SPDX-License-Identifier: Apache-2.0 */
/* Text files with one record on each line. */
#include "lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static unsigned split(char *line, char *fields[LINES_FIELDS])
{
	char *rest, *field;
	unsigned n = 0;

	line[strcspn(line, "#\n")] = '\0';
	field = strtok_r(line, " \t\r", &rest);
	for (; field && n < LINES_FIELDS; field = strtok_r(NULL, " \t\r", &rest))
		fields[n++] = field;
	return field ? n + 1 : n;
}

static const char *take_line(char *line, lines_take *take, void *to)
{
	char *fields[LINES_FIELDS];
	unsigned n = split(line, fields);

	return n ? take(to, fields, n) : NULL;
}

int lines_read(const char *path, lines_take *take, void *to, struct lines_error *error)
{
	FILE *in = fopen(path, "re");
	const char *wrong = NULL;
	unsigned number = 0;
	char line[256];

	if (!in) {
		snprintf(error->text, sizeof(error->text), "%s: %s", path, strerror(errno));
		return -1;
	}
	while (!wrong && fgets(line, sizeof(line), in)) {
		number++;
		wrong = strlen(line) == sizeof(line) - 1 ? "it is too long"
							 : take_line(line, take, to);
	}
	fclose(in);
	if (wrong)
		snprintf(error->text, sizeof(error->text), "%s: line %u: %s", path, number, wrong);
	return wrong ? -1 : 0;
}
