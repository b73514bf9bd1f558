/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of gtpu. */
#include "sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "numbers.h"

#define FIELDS 5

/* How many fields there are; more than FIELDS are counted as one more. */
static unsigned split(char *line, char *fields[FIELDS])
{
	char *rest, *field = strtok_r(line, " \t\r", &rest);
	unsigned n = 0;

	for (; field && n < FIELDS; field = strtok_r(NULL, " \t\r", &rest))
		fields[n++] = field;
	return field ? n + 1 : n;
}

/* NULL, or what is wrong. */
static const char *read_line(struct gtpu *gtpu, char *line)
{
	struct session s = {0}, *more;
	char *fields[FIELDS];
	uint32_t qfi;
	unsigned n;

	line[strcspn(line, "#\n")] = '\0';
	n = split(line, fields);
	if (n == 0)
		return NULL;
	if (n != FIELDS || !number_ip4(fields[0], &s.ue) || !number_read32(fields[1], 0, UINT32_MAX, &s.here) ||
	    !number_read32(fields[2], 0, UINT32_MAX, &s.there) || !number_ip4(fields[3], &s.peer) || !number_read32(fields[4], 0, 63, &qfi))
		return "it is not \"UE-ADDRESS TEID-HERE TEID-THERE PEER-ADDRESS QFI\", with a QFI from 0 to 63";
	if (gtpu->count == SESSIONS_MAX)
		return "it is one session too many";
	s.qfi = (uint8_t)qfi;
	if ((gtpu->count & (gtpu->count - 1)) == 0) { /* 0, and powers of two: make twice as much room */
		more = reallocarray(gtpu->sessions, gtpu->count ? 2 * (size_t)gtpu->count : 1, sizeof(s));
		if (!more)
			return "there is no memory for it";
		gtpu->sessions = more;
	}
	gtpu->sessions[gtpu->count++] = s;
	return NULL;
}

int sessions_read(struct gtpu *gtpu, const char *path, struct sessions_error *error)
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
		wrong = strlen(line) == sizeof(line) - 1 ? "it is too long" : read_line(gtpu, line);
	}
	fclose(in);
	if (wrong)
		snprintf(error->text, sizeof(error->text), "%s: line %u: %s", path, number, wrong);
	return wrong ? -1 : 0;
}

int sessions_generate(struct gtpu *gtpu, uint32_t count, uint32_t ue, uint32_t teid, uint32_t peer, uint8_t qfi)
{
	gtpu->sessions = calloc(count, sizeof(*gtpu->sessions));
	if (!gtpu->sessions)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		gtpu->sessions[i] = (struct session){.ue = ue + i, .here = teid + i, .there = teid + i, .peer = peer, .qfi = qfi};
	gtpu->count = count;
	return 0;
}
