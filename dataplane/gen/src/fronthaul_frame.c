/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a fronthaul: Ethernet with a VLAN tag, eCPRI 2.0, and O-RAN.WG4.CUS without a
 * compression header (static BFP, nine bits). The payload is in the samples of the U-plane, after
 * the first of them, and in the padding of the C-plane: 42 bytes of the frame are before it in
 * both.
 */
#include <string.h>

#include "frame.h"
#include "fronthaul.h"
#include "net.h"

#define ECPRI (ETHERNET + TAG)
#define MESSAGE (ECPRI + 4)	/* eAxC ID and sequence ID */
#define APPLICATION (ECPRI + 8) /* direction, frame, subframe, slot and symbol */
#define SECTION_U (APPLICATION + 4)
#define SECTION_C (APPLICATION + 8)
#define C_BYTES 20u /* of a C-plane message with one section, after eCPRI's header */

#define REVISION 0x10u /* the first, and no other message follows */
#define MESSAGE_U 0u
#define MESSAGE_C 2u
#define MESSAGE_VENDOR 64u /* the first that vendors may use */
#define PRIORITY 7u	   /* PCP */
#define LAST 0x80u	   /* the only part of a message */
#define DOWNLINK 0x90u	   /* and version 1 of the payload, and no filter */
#define ALL_RE 0xfff0u
#define SUBFRAMES 10u
#define FRAMES 256u

static uint32_t slots_per_subframe(const struct fronthaul *f)
{
	return f->scs / 15;
}

/* What follows eCPRI's header has so many bytes. */
static void write_message(uint8_t *frame, uint32_t type, uint32_t bytes)
{
	frame[ECPRI] = REVISION;
	frame[ECPRI + 1] = (uint8_t)type;
	put16(frame + ECPRI + 2, bytes);
}

/* The first four bytes of both planes' application headers. */
static void write_time(uint8_t *at, const struct fronthaul *f, uint64_t slot, uint32_t symbol)
{
	uint64_t subframe = slot / slots_per_subframe(f);

	at[0] = DOWNLINK;
	at[1] = (uint8_t)(subframe / SUBFRAMES % FRAMES);
	put16(at + 2,
	      (uint32_t)(subframe % SUBFRAMES << 12 | slot % slots_per_subframe(f) << 6 | symbol));
}

/* Section 0, of all PRBs: a number of them that has no room in its byte is 0. */
static void write_section(uint8_t *at, const struct fronthaul *f)
{
	memset(at, 0, 3);
	at[3] = f->prb > UINT8_MAX ? 0 : (uint8_t)f->prb;
}

/* Section type 1 for the whole slot; its compression is that of the M-plane. */
static void write_c_plane(uint8_t *frame, const struct fronthaul *f)
{
	write_message(frame, MESSAGE_C, C_BYTES);
	memcpy(frame + APPLICATION + 4, (const uint8_t[]){1, 1, 0, 0}, 4);
	write_section(frame + SECTION_C, f);
	put16(frame + SECTION_C + 4, ALL_RE | FRONTHAUL_SYMBOLS);
	put16(frame + SECTION_C + 6, 0);
}

/* The first bytes of the samples: their exponent, 0, and samples of 0. */
static void write_u_plane(uint8_t *frame, const struct fronthaul *f, uint32_t payload)
{
	write_message(frame, MESSAGE_U, FRAME_HEADERS - MESSAGE + payload);
	write_section(frame + SECTION_U, f);
	memset(frame + SECTION_U + 4, 0, FRAME_HEADERS - SECTION_U - 4);
}

/* A message of this schedule; its sequence ID counts those of its plane and layer. */
static void write_numbered(uint8_t *frame, const struct fronthaul *f, uint32_t payload,
			   uint64_t number)
{
	uint64_t all = (uint64_t)FRONTHAUL_GROUPS * f->layers, period = number / all;
	const struct fronthaul_group *g = &f->groups[number % all / f->layers];
	bool c_plane = g->plane == FRONTHAUL_C;
	uint64_t sequence = c_plane ? period : period * FRONTHAUL_SYMBOLS + g->before;

	put16(frame + MESSAGE, (uint32_t)(number % f->layers));
	put16(frame + MESSAGE + 2, (uint32_t)(sequence & UINT8_MAX) << 8 | LAST);
	write_time(frame + APPLICATION, f, period + g->ahead, g->symbol);
	if (c_plane)
		write_c_plane(frame, f);
	else
		write_u_plane(frame, f, payload);
}

void fronthaul_write(uint8_t *frame, const struct frame_address *a, uint32_t payload,
		     uint64_t number)
{
	const struct fronthaul *f = a->fronthaul;

	memcpy(frame, a->to_mac, 6);
	memcpy(frame + 6, a->from_mac, 6);
	put16(frame + 12, TYPE_VLAN);
	put16(frame + ETHERNET, PRIORITY << 13 | f->vlan);
	put16(frame + ETHERNET + 2, TYPE_ECPRI);
	if (number != SLOTS_NO_NUMBER) {
		write_numbered(frame, f, payload, number);
		return;
	}
	write_message(frame, MESSAGE_VENDOR, FRAME_HEADERS - MESSAGE + payload);
	memset(frame + MESSAGE, 0, FRAME_HEADERS - MESSAGE);
}

uint32_t fronthaul_payload(const uint8_t *frame, uint32_t length)
{
	uint32_t bytes = get16(frame + ECPRI + 2), room = length - MESSAGE;

	if (get16(frame + ETHERNET + 2) != TYPE_ECPRI || frame[ECPRI] != REVISION || bytes > room)
		return 0;
	switch (frame[ECPRI + 1]) {
	case MESSAGE_C:
		return bytes == C_BYTES ? room - bytes : 0;
	case MESSAGE_U:
	case MESSAGE_VENDOR:
		return bytes > FRAME_HEADERS - MESSAGE ? bytes - (FRAME_HEADERS - MESSAGE) : 0;
	}
	return 0;
}

bool fronthaul_symbol(const struct fronthaul *f, const uint8_t *frame, uint64_t ns,
		      struct fronthaul_symbol *s)
{
	const uint8_t type = frame[ECPRI + 1], number = frame[APPLICATION + 1];
	const uint32_t time = get16(frame + APPLICATION + 2), subframe = time >> 12,
		       slots = slots_per_subframe(f), all = FRAMES * SUBFRAMES * slots;
	uint64_t slot = (number * SUBFRAMES + subframe) * slots + (time >> 6 & 0x3f);

	if (type != MESSAGE_C && type != MESSAGE_U)
		return false;
	*s = (struct fronthaul_symbol){.plane = type == MESSAGE_C ? FRONTHAUL_C : FRONTHAUL_U,
				       .slot = slots_nearest(&f->slots, slot, all, ns),
				       .symbol = time & 0x3f};
	return s->symbol < FRONTHAUL_SYMBOLS;
}

bool fronthaul_window(const struct fronthaul *f, const uint8_t *frame, uint64_t ns,
		      struct slots_window *w)
{
	struct fronthaul_symbol symbol;
	uint64_t air;

	if (!fronthaul_symbol(f, frame, ns, &symbol))
		return false;
	air = fronthaul_air(f, &symbol);
	*w = (struct slots_window){.kind = symbol.plane,
				   .opens = air - f->t2a[symbol.plane].most_ns,
				   .closes = air - f->t2a[symbol.plane].least_ns,
				   .send_by = air - f->t1a[symbol.plane].least_ns};
	return true;
}
