/* oauth_flow_device.c - the steps of a sign-in by the device grant.
 *
 *   DEVICE -> PAUSE -> POLL -> PAUSE -> POLL ... -> ended
 *
 * A provider that does not answer a poll is asked again, less often, until the
 * code has expired: the person may have agreed in the meantime. */
#include "mcp/oauth/oauth_flow_priv.h"

int mo_flow_start_device(struct mo_flow *f, struct mo_err *e)
{
    mo_autowipe struct mo_buf form = {.max = MO_FLOW_FORM_MAX};
    mo_autowipe struct mo_buf basic = {.max = MO_FLOW_FORM_MAX};
    int rc = mo_oauth_device_body(&form, &f->client, &f->attempt);

    mo_flow_set_state(f, DEVICE);
    if (rc == 0 && f->client.method == MO_OAUTH_BASIC)
        rc = mo_oauth_basic(&basic, &f->client);
    if (rc < 0)
        return mo_fail(e, rc, "device request");
    return mo_oauth_ask(&f->q, f->issuer.device,
                        "application/x-www-form-urlencoded", mo_buf_view(&form),
                        mo_buf_view(&basic), e);
}

void mo_flow_pause(struct mo_flow *f, bool slower)
{
    uint64_t *ms = &f->device.interval_ms;

    if (slower)
        *ms = 2 * *ms < MO_DEVICE_MAX_MS ? 2 * *ms : MO_DEVICE_MAX_MS;
    mo_flow_set_state(f, PAUSE);
    mo_timer_start(f->o.oauth->loop, &f->timer, *ms);
}

void mo_flow_poll(struct mo_flow *f)
{
    mo_autowipe struct mo_buf form = {.max = MO_FLOW_FORM_MAX};
    struct mo_err e = {0};

    if (mo_now_ns() >= f->device_ends) {
        mo_flow_finish(f, mo_error(MO_ETIMEOUT, "the code has expired, and "
                                                "nobody has signed in"));
        return;
    }
    mo_flow_set_state(f, POLL);
    (void)mo_oauth_device_poll_body(&form, &f->client, &f->attempt, &f->device);
    if (mo_flow_post(f, &form, &e) < 0)
        mo_flow_finish(f, &e);
}

int mo_flow_handle_device(struct mo_flow *f, struct mo_err *e)
{
    struct mo_span body = mo_buf_view(&f->q.body);
    uint64_t ms = f->o.oauth->sign_in_ms;
    int rc;

    if (f->q.status != 200)
        return mo_fail(e, f->q.status >= 500 ? MO_EUNAVAIL : MO_EPOLICY,
                       "the provider refused the device (%d): %.80s",
                       f->q.status, mo_oauth_error(&f->a, body));
    rc = mo_oauth_device_parse(&f->a, body, f->o.oauth->server, &f->device, e);
    if (rc < 0)
        return rc;
    if (ms && ms < f->device.life_ms)
        f->device.life_ms = ms;
    f->device_ends = mo_now_ns() + f->device.life_ms * MO_MS;
    mo_flow_pause(f, false);
    f->o.oauth->on_device(f->o.oauth->ctx, &f->device, &f->issuer);
    return 0;
}

int mo_flow_handle_poll(struct mo_flow *f, struct mo_err *e)
{
    const char *error;
    int rc = mo_flow_post_again(f, e);

    if (rc != 0)
        return rc;
    if (f->q.status >= 500) {
        mo_flow_pause(f, true);
        return 0;
    }
    if (f->q.status == 200)
        return mo_flow_handle_token(f, e);
    error = mo_oauth_error(&f->a, mo_buf_view(&f->q.body));
    switch (mo_oauth_device_verdict(error)) {
    case MO_DEVICE_SLOW_DOWN:
        f->device.interval_ms += MO_DEVICE_SLOW_MS;
        if (f->device.interval_ms > MO_DEVICE_MAX_MS)
            f->device.interval_ms = MO_DEVICE_MAX_MS;
        mo_flow_pause(f, false);
        return 0;
    case MO_DEVICE_PENDING:
        mo_flow_pause(f, false);
        return 0;
    case MO_DEVICE_REFUSED:
        break;
    }
    if (strcmp(error, "access_denied") == 0)
        return mo_fail(e, MO_EPOLICY, "the person refused");
    if (strcmp(error, "expired_token") == 0)
        return mo_fail(e, MO_ETIMEOUT,
                       "the code has expired, and nobody has signed in");
    return mo_flow_handle_token(f, e);
}
