/* SPDX-License-Identifier: Apache-2.0 */
/* The sender: each call copies its samples once, into shared memory. */
#include "rf_dray.h"

#include <errno.h>
#include <srsran/phy/common/phy_common.h>
#include <srsran/phy/utils/vector.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What srsRAN's struct of a sender has no place for. */
struct sender {
	struct dray_iq *stream;
	struct rf_dray_context *context;
};

int rf_zmq_tx_open(rf_zmq_tx_t *q, rf_zmq_opts_t opts, void *context, char *port)
{
	struct sender *s = calloc(1, sizeof(*s));

	memset(q, 0, sizeof(*q));
	snprintf(q->id, sizeof(q->id), "%s", opts.id);
	q->frequency_mhz = opts.frequency_mhz;
	q->sample_offset = opts.sample_offset;
	pthread_mutex_init(&q->mutex, NULL);
	if (s)
		s->stream = rf_dray_open(&opts, port, DRAY_IQ_SEND);
	if (!s || !s->stream) {
		free(s);
		return SRSRAN_ERROR;
	}
	s->context = context;
	pthread_mutex_lock(&s->context->mutex);
	s->context->sender = s->stream;
	pthread_mutex_unlock(&s->context->mutex);
	q->sock = s;
	q->running = true;
	return SRSRAN_SUCCESS;
}

/* Send samples, or zeros if there is no buffer. The mutex is held. */
static int transmit(rf_zmq_tx_t *q, const cf_t *buffer, uint32_t nsamples)
{
	struct sender *s = q->sock;
	int ret = s ? dray_iq_send(s->stream, buffer, NSAMPLES2NBYTES(nsamples)) : -ECANCELED;

	if (ret)
		return rf_dray_failed("sending", ret);
	q->nsamples += nsamples;
	return (int)nsamples;
}

/* The device argument tx_offset: send that many zeros first, or leave out as many samples. */
static int transmit_shifted(rf_zmq_tx_t *q, const cf_t *buffer, uint32_t nsamples)
{
	uint32_t left_out = 0;

	if (q->sample_offset > 0) {
		if (transmit(q, NULL, (uint32_t)q->sample_offset) < 0)
			return SRSRAN_ERROR;
		q->sample_offset = 0;
	} else if (q->sample_offset < 0) {
		left_out = SRSRAN_MIN((uint32_t)-q->sample_offset, nsamples);
		q->sample_offset += (int32_t)left_out;
	}
	if (left_out < nsamples && transmit(q, buffer + left_out, nsamples - left_out) < 0)
		return SRSRAN_ERROR;
	return (int)nsamples;
}

int rf_zmq_tx_align(rf_zmq_tx_t *q, uint64_t ts)
{
	int64_t gap;

	pthread_mutex_lock(&q->mutex);
	gap = (int64_t)ts - (int64_t)q->nsamples;
	if (gap > 0)
		(void)transmit(q, NULL, (uint32_t)gap);
	pthread_mutex_unlock(&q->mutex);
	return (int)gap;
}

int rf_zmq_tx_baseband(rf_zmq_tx_t *q, cf_t *buffer, uint32_t nsamples)
{
	int n;

	pthread_mutex_lock(&q->mutex);
	n = transmit_shifted(q, buffer, nsamples);
	pthread_mutex_unlock(&q->mutex);
	return n;
}

int rf_zmq_tx_zeros(rf_zmq_tx_t *q, uint32_t nsamples)
{
	int n;

	pthread_mutex_lock(&q->mutex);
	n = transmit(q, NULL, nsamples);
	pthread_mutex_unlock(&q->mutex);
	return n;
}

int rf_zmq_tx_get_nsamples(rf_zmq_tx_t *q)
{
	int n;

	pthread_mutex_lock(&q->mutex);
	n = (int)q->nsamples;
	pthread_mutex_unlock(&q->mutex);
	return n;
}

bool rf_zmq_tx_match_freq(rf_zmq_tx_t *q, uint32_t freq_hz)
{
	return q && (q->frequency_mhz == 0 || q->frequency_mhz == freq_hz);
}

bool rf_zmq_tx_is_running(rf_zmq_tx_t *q)
{
	return q && rf_dray_running(&q->running);
}

/* End a call that waits, then wait for it. */
void rf_zmq_tx_close(rf_zmq_tx_t *q)
{
	struct sender *s = q->sock;

	if (!s)
		return;
	__atomic_store_n(&q->running, false, __ATOMIC_RELAXED);
	dray_iq_stop(s->stream);
	pthread_mutex_lock(&q->mutex);
	pthread_mutex_lock(&s->context->mutex);
	if (s->context->sender == s->stream)
		s->context->sender = NULL;
	dray_iq_close(s->stream);
	pthread_mutex_unlock(&s->context->mutex);
	free(s);
	q->sock = NULL;
	pthread_mutex_unlock(&q->mutex);
}
