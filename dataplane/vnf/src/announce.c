/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading announcements. */
#include "announce.h"

#define TYPE_LOCAL 0x88b5u /* IEEE 802, for local experiments */
#define NUMBER_AT 22u

static const uint8_t nearest_bridge[MAC] = {0x01, 0x80, 0xc2, 0, 0, 0x0e};
static const uint8_t mark[] = {'d', 'r', 'a', 'y', 'L', 'B', 1};

void announce_write(uint8_t frame[ANNOUNCEMENT], const uint8_t mac[MAC], enum announcement what,
		    uint64_t number)
{
	memset(frame, 0, ANNOUNCEMENT);
	memcpy(frame, nearest_bridge, MAC);
	memcpy(frame + MAC, mac, MAC);
	put16(frame + 2 * MAC, TYPE_LOCAL);
	memcpy(frame + ETHERNET, mark, sizeof(mark));
	frame[ETHERNET + sizeof(mark)] = (uint8_t)what;
	put32(frame + NUMBER_AT, (uint32_t)(number >> 32));
	put32(frame + NUMBER_AT + 4, (uint32_t)number);
}

enum announcement announce_read(const struct packet *p, uint64_t *number)
{
	uint8_t what;

	if (p->have < NUMBER_AT + 8 || get16(p->head + 2 * MAC) != TYPE_LOCAL ||
	    memcmp(p->head + ETHERNET, mark, sizeof(mark)) != 0)
		return ANNOUNCES_NOTHING;
	what = p->head[ETHERNET + sizeof(mark)];
	*number = (uint64_t)get32(p->head + NUMBER_AT) << 32 | get32(p->head + NUMBER_AT + 4);
	return what == ANNOUNCES_HERE || what == ANNOUNCES_LEAVING ? what : ANNOUNCES_NOTHING;
}
