/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of gtpu. */
#include "sessions.h"

#include <stdlib.h>

#include "numbers.h"

#define FIELDS 5

static const char *take_session(void *to, char *const *fields, unsigned n)
{
	struct gtpu *gtpu = to;
	struct session s = {0}, *more;
	uint32_t qfi;

	if (n != FIELDS || !number_ip4(fields[0], &s.ue) ||
	    !number_read32(fields[1], 0, UINT32_MAX, &s.here) ||
	    !number_read32(fields[2], 0, UINT32_MAX, &s.there) || !number_ip4(fields[3], &s.peer) ||
	    !number_read32(fields[4], 0, 63, &qfi))
		return "it is not \"UE-ADDRESS TEID-HERE TEID-THERE PEER-ADDRESS QFI\", with a QFI "
		       "from 0 to 63";
	if (gtpu->count == SESSIONS_MAX)
		return "it is one session too many";
	s.qfi = (uint8_t)qfi;
	if ((gtpu->count & (gtpu->count - 1)) ==
	    0) { /* 0, and powers of two: make twice as much room */
		more = reallocarray(gtpu->sessions, gtpu->count ? 2 * (size_t)gtpu->count : 1,
				    sizeof(s));
		if (!more)
			return "there is no memory for it";
		gtpu->sessions = more;
	}
	gtpu->sessions[gtpu->count++] = s;
	return NULL;
}

int sessions_read(struct gtpu *gtpu, const char *path, struct lines_error *error)
{
	return lines_read(path, take_session, gtpu, error);
}

int sessions_generate(struct gtpu *gtpu, uint32_t count, uint32_t ue, uint32_t teid, uint32_t peer,
		      uint8_t qfi)
{
	gtpu->sessions = calloc(count, sizeof(*gtpu->sessions));
	if (!gtpu->sessions)
		return -1;
	for (uint32_t i = 0; i < count; i++)
		gtpu->sessions[i] = (struct session){.ue = ue + i,
						     .here = teid + i,
						     .there = teid + i,
						     .peer = peer,
						     .qfi = qfi};
	gtpu->count = count;
	return 0;
}
