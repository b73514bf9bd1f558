/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FAPI's options and messages. Fields are little-endian, as the two ends are on one machine:
 * u8 number of messages, u8 opaque handle, u16 message type, u32 length of what follows, u16 SFN,
 * u16 slot.
 */
#include "fapi.h"

#include <string.h>

#include "fields.h"
#include "units.h"

#define US 1000u
#define WITHIN_MAX 10000u /* us */

/* Offsets. */
enum { COUNT, HANDLE, TYPE, LENGTH = 4, SFN = 8, SLOT = 10 };

#define BEFORE_BODY SFN /* bytes that the length does not count */

#define DL_TTI_REQUEST 0x80u
#define TX_DATA_REQUEST 0x84u
#define VENDOR 0x300u /* the first that nFAPI leaves to vendors: of messages without a slot */

#define FRAMES 1024u /* SFN have ten bits */

enum field { F_SCS, F_DL_TTI, F_TX_DATA, F_WITHIN };

static bool read_field(int field, char *value, void *to)
{
	struct fapi *f = to;
	uint32_t us;

	switch (field) {
	case F_SCS:
		return units_between(value, 15, 120, &f->scs) &&
		       (f->scs == 15 || f->scs == 30 || f->scs == 120);
	case F_DL_TTI:
		return units_between(value, FAPI_MIN, FAPI_MAX, &f->dl_tti);
	case F_TX_DATA:
		return units_between(value, FAPI_MIN, FAPI_MAX, &f->tx_data);
	default:
		if (!units_between(value, 1, WITHIN_MAX, &us))
			return false;
		f->within_ns = (uint64_t)us * US;
		return true;
	}
}

const char *fapi_read(const char *text, struct fapi *f)
{
	char *const names[] = {"scs", "dl-tti", "tx-data", "within", NULL};
	const char *wrong;

	*f = (struct fapi){.dl_tti = 2048, .tx_data = 115000};
	wrong = fields_read(text, names, read_field, f);
	if (wrong || f->scs == 0)
		return wrong ? wrong : "lacks scs=15, 30 or 120";
	f->slots =
		(struct slots){.slot_ns = slots_length(f->scs),
			       .groups = 1,
			       .burst = FAPI_KINDS,
			       .sizes = {[FAPI_DL_TTI] = f->dl_tti, [FAPI_TX_DATA] = f->tx_data}};
	if (f->within_ns == 0)
		f->within_ns = f->slots.slot_ns;
	return NULL;
}

static uint32_t le16(const uint8_t *from)
{
	return from[0] | (uint32_t)from[1] << 8;
}

static uint32_t le32(const uint8_t *from)
{
	return le16(from) | le16(from + 2) << 16;
}

static void put_le16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)value;
	to[1] = (uint8_t)(value >> 8);
}

static uint32_t slots_per_frame(const struct fapi *f)
{
	return 10 * f->scs / 15;
}

void fapi_write(uint8_t *message, const struct fapi *f, uint32_t payload, uint64_t number)
{
	const bool numbered = number != SLOTS_NO_NUMBER;
	const uint64_t slot = numbered ? number / FAPI_KINDS : 0;
	const uint32_t length = FAPI_HEADERS - BEFORE_BODY + payload,
		       type = number % FAPI_KINDS == FAPI_DL_TTI ? DL_TTI_REQUEST : TX_DATA_REQUEST;

	message[COUNT] = 1;
	message[HANDLE] = 0;
	put_le16(message + TYPE, numbered ? type : VENDOR);
	put_le16(message + LENGTH, length);
	put_le16(message + LENGTH + 2, length >> 16);
	put_le16(message + SFN, (uint32_t)(slot / slots_per_frame(f) % FRAMES));
	put_le16(message + SLOT, (uint32_t)(slot % slots_per_frame(f)));
}

uint32_t fapi_payload(const uint8_t *message, uint32_t length)
{
	uint8_t h[FAPI_HEADERS];
	uint32_t type;

	if (length < FAPI_HEADERS)
		return 0;
	memcpy(h, message, sizeof(h));
	type = le16(h + TYPE);
	if (h[COUNT] != 1 || le32(h + LENGTH) != length - BEFORE_BODY ||
	    (type != DL_TTI_REQUEST && type != TX_DATA_REQUEST && type != VENDOR))
		return 0;
	return length - FAPI_HEADERS;
}

bool fapi_window(const struct fapi *f, const uint8_t *message, uint64_t ns, struct slots_window *w)
{
	const uint32_t type = le16(message + TYPE), sfn = le16(message + SFN),
		       slot = le16(message + SLOT), slots = slots_per_frame(f);
	uint64_t begins;

	if ((type != DL_TTI_REQUEST && type != TX_DATA_REQUEST) || sfn >= FRAMES || slot >= slots)
		return false;
	begins = slots_nearest(&f->slots, (uint64_t)sfn * slots + slot, (uint64_t)FRAMES * slots,
			       ns) *
		 f->slots.slot_ns;
	*w = (struct slots_window){.kind = type == DL_TTI_REQUEST ? FAPI_DL_TTI : FAPI_TX_DATA,
				   .opens = begins,
				   .closes = begins + f->within_ns,
				   .send_by = begins + f->within_ns};
	return true;
}
