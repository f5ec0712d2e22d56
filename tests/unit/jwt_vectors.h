/* Keys and tokens for the tests of jwk.h. The keys were made for this file. */
static const struct {
    const char *alg, *jwk, *token;
} vectors[] = {
    {"RS256",
     "{\"kty\":\"RSA\",\"n\":\"v7pkwfkI-fMruPrxph9N-m3BtDpoMsEmCEFAnKHwp0"
     "FxByqUBrbIyNzCxpLuS5KN84Q25LRSyAeF7ns91gRMCaIzYpJ84rhH0iEteC"
     "3tAEzKMf-EoRQZgRmltVKYSKOdeGU1DHMYeAXPZBjUZdrJuKPe0ngpL8AoAq"
     "Hrp92spHajoDrPM5fjDcci2dlC4i5I4AlUvz1bCED90rKVzOUuy2bU8U9G1l"
     "pvVqwaeY_LyW8X8i8n23lNefvQTYdTYgXqRzro98ZhLFx2Kxxn0ZSMeqEmtW"
     "OxI7vCorEZmwRYSU7a-jeg1llp5I0BmOoOkD5PpeuY5zDGmiFmlEV04767tw"
     "\",\"e\":\"AQAB\",\"kid\":\"k1\",\"use\":\"sig\",\"alg\":\"RS256\"}",
     "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsxIn0.eyJpc3MiOiJodHRwczovL2lk"
     "cC50ZXN0IiwiYXVkIjoiaHR0cHM6Ly91cy50ZXN0L21jcCIsImV4cCI6NDAw"
     "MDAwMDAwMCwic3ViIjoiYWxpY2UifQ.BdhcL2YXZlfyTqxa2sMQp9nVk7GUj"
     "FKiVYEZ7On9IAQbdu_VBQnjw-0FrOUKVfgRswEix_VRU8stRYGSkiznDWa8N"
     "g6EAetywCxpgYVIL5IEr0KVjpOXwtshBAgCwe9JLAQvhSw81oVa2u7SzNZZZ"
     "kv3UlC6yJpBmF2RAvj5IxoGdRbzRBUMmP-OZX_5McMEQOoZEM7pGIdLRM9YZ"
     "X9TZJbHC63Szb8mfR9mMBwyOTxD3rjRhsqCAAgWdEyjwFOH6avlsAsR3ClXM"
     "E2YeifKi2jCwoAKhQeZwbX_A6xEB3xnVpnqhYdVuzWq5cACTHzV-_iJz1x-A"
     "MmBlixx7wAntA"},
    {"ES256",
     "{\"kty\":\"EC\",\"x\":\"vIxve481RxTLXgaytkYkoBJBpopOTRC5n6h3C4H3rQU"
     "\",\"y\":\"wFMqCbebQ74vIXcd1ATwq6si6HKYEZmXCgfpMLVT2pw\",\"crv\":\"P"
     "-256\",\"kid\":\"k1\",\"use\":\"sig\",\"alg\":\"ES256\"}",
     "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0.eyJpc3MiOiJodHRwczovL2lk"
     "cC50ZXN0IiwiYXVkIjoiaHR0cHM6Ly91cy50ZXN0L21jcCIsImV4cCI6NDAw"
     "MDAwMDAwMCwic3ViIjoiYWxpY2UifQ.6p_coAXeW1xq2vQIxPPi0o-qLxiud"
     "DAFHl0kuQCM2OqqjuvC4N_KnBXOPcN186AfSFGKwP0M3Gwrj5TGm6JNRA"},
    {"EdDSA",
     "{\"crv\":\"Ed25519\",\"x\":\"p3frOrojaTdBFeLKX20h5FBd2wWO5SJYuDeKgh"
     "IJg94\",\"kty\":\"OKP\",\"kid\":\"k1\",\"use\":\"sig\",\"alg\":"
     "\"EdDSA\"}",
     "eyJhbGciOiJFZERTQSIsImtpZCI6ImsxIn0.eyJpc3MiOiJodHRwczovL2lk"
     "cC50ZXN0IiwiYXVkIjoiaHR0cHM6Ly91cy50ZXN0L21jcCIsImV4cCI6NDAw"
     "MDAwMDAwMCwic3ViIjoiYWxpY2UifQ.aYr1I8RQY3DdOwQdRiUfREogGN0VT"
     "BTWA2pELXiuCxfG0sn38OatRqrZCQdzpRKmn35wrBYa7HW3tThuXuG2CA"},
};
