/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications, whole, short, and with lengths that are not theirs. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>

#include "check.h"
#include "notice.h"

static char out[70000 + NOTICE_MORE];
static struct notice_end end;

void test_failed(void)
{
	_exit(1);
}

static size_t translate(const void *from, size_t size)
{
	uint8_t all[K_EVENT_KINDS];

	memset(all, 1, sizeof(all));
	memset(out, 0x55, sizeof(out));
	return notice_translate(from, size, all, out, &end);
}

static void changes(void)
{
	struct {
		struct sctp_assoc_change change;
		char abort[20];
	} from = {.change = {.sac_type = SCTP_ASSOC_CHANGE,
			     .sac_length = sizeof(from),
			     .sac_state = SCTP_CANT_STR_ASSOC,
			     .sac_assoc_id = 7,
			     .sac_outbound_streams = 3}};
	struct k_assoc_change *to = (void *)out;

	CHECK_EQ(translate(&from, sizeof(from)), sizeof(*to) + 20);
	CHECK_EQ(to->type, K_ASSOC_CHANGE);
	CHECK_EQ(to->length, sizeof(*to) + 20);
	CHECK_EQ(to->state, 4);
	CHECK_EQ(to->assoc_id, 7);
	CHECK_EQ(end.id, 7);
	CHECK_EQ(end.error, ECONNREFUSED);
	from.change.sac_length = sizeof(from.change);
	CHECK_EQ(translate(&from, sizeof(from.change)), sizeof(*to));
	CHECK_EQ(end.error, ETIMEDOUT);
	from.change.sac_state = SCTP_COMM_UP;
	CHECK_EQ(translate(&from, sizeof(from.change)), sizeof(*to));
	CHECK_EQ(to->state, 0);
	CHECK_EQ(end.id, 0);
}

/* No length from 0 on makes it read or write more than there is: AddressSanitizer would say so. */
static void lengths(void)
{
	static const uint16_t types[] = {SCTP_ASSOC_CHANGE,
					 SCTP_PEER_ADDR_CHANGE,
					 SCTP_REMOTE_ERROR,
					 SCTP_SEND_FAILED_EVENT,
					 SCTP_SHUTDOWN_EVENT,
					 SCTP_ADAPTATION_INDICATION,
					 SCTP_PARTIAL_DELIVERY_EVENT,
					 SCTP_SENDER_DRY_EVENT,
					 0,
					 0xffff};

	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		for (size_t size = 0; size < 400; size++) {
			for (int claim = 0; claim < 4; claim++) {
				uint32_t claims[] = {0, (uint32_t)size, 8, 0xffffffffu};
				char *exact = malloc(size);
				struct sctp_tlv head = {.sn_type = types[t],
							.sn_length = claims[claim]};

				memset(exact, 0xff, size);
				memcpy(exact, &head, size < sizeof(head) ? size : sizeof(head));
				CHECK(translate(exact, size) <= size + NOTICE_MORE);
				free(exact);
			}
		}
	}
}

static void failed_message(void)
{
	size_t size = sizeof(struct sctp_send_failed_event) + 65536;
	struct sctp_send_failed_event *from = calloc(1, size);
	struct k_send_failed_event *to = (void *)out;
	struct k_send_failed *old = (void *)out;
	uint8_t only_old[K_EVENT_KINDS] = {[K_SEND_FAILED - K_BASE] = 1};

	from->ssfe_type = SCTP_SEND_FAILED_EVENT;
	from->ssfe_length = (uint32_t)size;
	from->ssfe_info.snd_ppid = 60;
	from->ssfe_flags = SCTP_DATA_SENT;
	CHECK_EQ(translate(from, size), sizeof(*to) + 65536);
	CHECK_EQ(to->type, K_SEND_FAILED_EVENT);
	CHECK_EQ(to->flags, 1);
	CHECK_EQ(to->info.ppid, 60);
	CHECK_EQ(notice_translate(from, size, only_old, out, &end), sizeof(*old) + 65536);
	CHECK_EQ(old->type, K_SEND_FAILED);
	CHECK_EQ(old->info.ppid, 60);
	free(from);
}

static void unwanted(void)
{
	struct sctp_shutdown_event from = {.sse_type = SCTP_SHUTDOWN_EVENT,
					   .sse_length = sizeof(from)};
	uint8_t none[K_EVENT_KINDS] = {0};

	CHECK_EQ(notice_translate(&from, sizeof(from), none, out, &end), 0);
	CHECK_EQ(translate(&from, sizeof(from)), sizeof(struct k_shutdown_event));
}

int main(void)
{
	changes();
	lengths();
	failed_message();
	unwanted();
	return 0;
}
