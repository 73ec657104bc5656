"""Coefficients of polynomials, constant first. Written by `derive`; do not edit."""

from __future__ import annotations


def _table(text: str) -> tuple[float, ...]:
    return tuple(float.fromhex(word) for word in text.split())


EXP2 = _table("""
    0x1.62e42fefa39efp-1
    0x1.ebfbdff823cedp-3
    0x1.c6b08d7047e52p-5
    0x1.3b2ab7181b755p-7
    0x1.5d87fe86fe88ep-10
    0x1.4308ac85aa947p-13
    0x1.ffcb9515a8016p-17
    0x1.63d136366db24p-20
    0x1.b63880a30e9ffp-24
""")
"""(2**r - 1) / r: within a factor of 1 + 2**-43."""

EXPM1 = _table("""
    0x1.5555555555555p-3
    0x1.5555555555556p-5
    0x1.1111111111111p-7
    0x1.6c16c16c162d6p-10
    0x1.a01a01a019b2bp-13
    0x1.a01a01a6d7808p-16
    0x1.71de3a5904934p-19
    0x1.27e4db67b4303p-22
    0x1.ae64344d7f4e6p-26
    0x1.1f72fc730b4ffp-29
    0x1.61b2b016a9a33p-33
""")
"""(exp(r) - 1 - r - r**2 / 2) / r**3: within a factor of 1 + 2**-50."""

LOG = _table("""
    0x1.5555555555558p-1
    0x1.99999999952d8p-2
    0x1.2492492df26cep-2
    0x1.c71c62e40b94ep-3
    0x1.7462b5152e8a6p-3
    0x1.39fe52a20dc69p-3
    0x1.2b58f4c8d5f63p-3
""")
"""(log(m) / s - 2) / z, z = s**2: within a factor of 1 + 2**-50."""

ASIN = _table("""
    0x1.55555555555bbp-3
    0x1.33333333030cfp-4
    0x1.6db6dba99e56dp-5
    0x1.f1c6ff7f5507fp-6
    0x1.6e8f34a32a3ecp-6
    0x1.1c0d74beb3610p-6
    0x1.cf5ed14c7cb7ep-7
    0x1.512bc40e88a9ep-7
    0x1.fa1b2b4831188p-7
    -0x1.bf16e7c9f283cp-8
    0x1.c8a4a8d5d7026p-6
""")
"""(asin(s) - s) / s**3 in z = s**2: within a factor of 1 + 2**-45."""

SINPI = _table("""
    0x1.0000000000000p+0
    -0x1.a51a6625307d3p+0
    0x1.9f9cb402bc3ebp-1
    -0x1.86a8e472088a4p-3
    0x1.ac6805cbe14f0p-6
    -0x1.3381697088111p-9
    0x1.37469730d3391p-13
    -0x1.d3e3c296a65cfp-18
    0x1.07192db714f81p-22
""")
"""sin(pi r) / (pi r) in r**2: within a factor of 1 + 2**-52."""

ERFC = _table("""
    0x1.18932bf08e198p-3
    -0x1.0949227373a34p-2
    0x1.bff01a5f8b1bdp-3
    -0x1.506666f717753p-3
    0x1.be502c3807791p-4
    -0x1.027d5725fc98ap-4
    0x1.0066e0f124263p-5
    -0x1.a4dee1c578c27p-7
    0x1.0a17d91ee5beep-8
    -0x1.a2f32e0f5c0bap-11
    -0x1.6c046614daac7p-16
    0x1.4ac82adcd661bp-14
    -0x1.7fc69e9d26e22p-16
    -0x1.03bc5fc949261p-19
    0x1.d064dd6702802p-19
    0x1.05b0662a7f456p-23
    -0x1.89576cb2e541ap-23
""")
"""exp(x**2) erfc(x) in t = (x - 4) / (x + 4), x up to 10.5: within a factor of 1 + 2**-43."""

I0_SMALL = _table("""
    0x1.ffffffffffbedp-1
    0x1.00000000031eap+0
    0x1.ffffffff9ab33p-3
    0x1.c71c71cc2b06ap-6
    0x1.c71c7183b9fe7p-10
    0x1.234569a2f0be0p-14
    0x1.02e84661cc21ep-19
    0x1.522b72a89f9d4p-25
    0x1.521ec5e70583fp-31
    0x1.0b7f9e914a156p-37
    0x1.5316627f82d2fp-44
    0x1.7cb857d3dd3aep-51
    0x1.e56127e3e805bp-59
    0x1.ace2b11d2ff4ep-65
""")
"""I0(x) in (x / 2)**2, x up to 8: within a factor of 1 + 2**-42."""

I0_SMALL_64 = _table("""
    0x1.0000000000000p+0
    0x1.0000000000000p+0
    0x1.0000000000000p-2
    0x1.c71c71c71c71cp-6
    0x1.c71c71c71c71dp-10
    0x1.23456789abcddp-14
    0x1.02e85c0898b95p-19
    0x1.522a43f654531p-25
    0x1.522a43f657e2ep-31
    0x1.0b31328993c10p-37
    0x1.5601886195fafp-44
    0x1.69ca9cc396f31p-51
    0x1.4197aa2de91e3p-58
    0x1.e7252ff507659p-66
    0x1.3e240591867c0p-73
    0x1.69ea59ad23672p-81
    0x1.6a6ec7245dae7p-89
    0x1.3d8dcfdf799afp-97
    0x1.0c2b9aef3724ap-105
    0x1.06a7c35d0429cp-114
    0x1.9f4d5a02a78c2p-122
""")
"""I0(x) in (x / 2)**2, x up to 10: within a factor of 1 + 2**-53."""

I0_LARGE_64 = _table("""
    0x1.9884533d43651p-2
    0x1.9884533d42e02p-5
    0x1.cb94ddaadf2bbp-6
    0x1.debb03ff33f0bp-6
    0x1.6e8f643e114fbp-5
    0x1.70193444fd260p-4
    0x1.48964926457c1p-2
    -0x1.e06f28bbc98c6p+2
    0x1.0aca82abc9aa4p+9
    -0x1.9379681648ac3p+14
    0x1.d46e8574bb3d6p+19
    -0x1.a398097b57a64p+24
    0x1.23a61a9b6cf76p+29
    -0x1.3a8e0869eff3ep+33
    0x1.05b9d968fbd5fp+37
    -0x1.4be3e2f81a31cp+40
    0x1.39fcb70fb80b9p+43
    -0x1.ac18657b210fbp+45
    0x1.8c8027fc8ea40p+47
    -0x1.bde756c927f85p+48
    0x1.cb1970700022fp+48
""")
"""sqrt(x) exp(-x) I0(x) in 1 / x, x from 10: within a factor of 1 + 2**-53."""

I0_LARGE = _table("""
    0x1.98845340795dbp-2
    0x1.9884303bfe007p-5
    0x1.cbbd8b87b8ffep-6
    0x1.d1620edb7eb99p-6
    0x1.681907f1642b6p-4
    -0x1.6f8aead22f06ap+0
    0x1.2a4078a2cade5p+5
    -0x1.37cb6a9949fabp+9
    0x1.c5d723130e7bdp+12
    -0x1.bbe1f28f125f1p+15
    0x1.151cf387a7562p+18
    -0x1.8a109f570f0bdp+19
    0x1.e12f2e156b329p+19
""")
"""sqrt(x) exp(-x) I0(x) in 1 / x, x from 8 to 93: within a factor of 1 + 2**-41."""

LGAMMA = _table("""
    0x1.b0ee6072093cep-2
    0x1.4a34cc4a60fa6p-2
    -0x1.13e001a557555p-4
    0x1.51322ac7d8333p-6
    -0x1.e404fc21d8fe7p-8
    0x1.7add6eadfcc7bp-9
    -0x1.38ac5bfce42c1p-10
    0x1.0b36af5972ed1p-11
    -0x1.d3fd6a9087d23p-13
    0x1.a127cd91ac95bp-14
    -0x1.78d8f868f383fp-15
    0x1.5808af19fa483p-16
    -0x1.3d4ce65b1d70bp-17
    0x1.2620de1c78d97p-18
    -0x1.08fccc794a9c7p-19
    0x1.f038cb2f6a913p-21
    -0x1.37fd97eeee99dp-21
    0x1.2703c6effc4ebp-22
""")
"""lgamma(2 + d) / d: within a factor of 1 + 2**-52."""

RGAMMA = _table("""
    0x1.20dd750429b6dp+0
    -0x1.514d3d90584b3p-5
    -0x1.0da5a671c048ap-1
    0x1.669be41a93895p-3
    0x1.a18540be32ca7p-5
    -0x1.5955cc39724a3p-5
    0x1.b16203e5e344dp-8
    0x1.15f7f060ff8c2p-9
    -0x1.232bd878ffabep-10
    0x1.3f845ff3a6edbp-13
    0x1.a963c6a36cac3p-16
    -0x1.d24ca6f39ac53p-17
    0x1.216694b7d8eacp-19
    0x1.f1b936cb1c15bp-25
    -0x1.7ed587ef3220ap-24
    0x1.25d5da9f3fb6bp-26
    -0x1.00033debf405dp-30
    -0x1.26b8a37a35ca8p-32
    0x1.480c1c6ec44bbp-34
    -0x1.19ecf30e66f30p-37
    -0x1.7981d441be35ep-44
    0x1.7d98ecbc8c5a8p-43
    -0x1.f62a53556199ep-46
    0x1.0d1d3dd2288c9p-49
    0x1.2d003852cb938p-53
    -0x1.c41252c3029e9p-55
    0x1.a9e96cdb43a98p-58
""")
"""1 / Gamma(3/2 + t): within a factor of 1 + 2**-103."""

RGAMMA_LOW = _table("""
    0x1.1ae3a914fed80p-56
    -0x1.f217f14a98ef7p-59
    -0x1.c2fd1a63503aep-58
    -0x1.8930f86069cffp-57
    0x1.cd20ad6739e09p-59
    0x1.c9214fcfe8656p-59
    0x1.a5e111d60a68cp-62
    0x1.4566d6c3e9d9ap-63
    -0x1.cc98063738ff1p-64
    -0x1.9c0bec421bd9bp-67
    0x1.27cca1f62b87cp-71
    0x1.0bc4672df6b94p-72
    0x1.a992150a5d62ap-74
    0x1.7e81d4ecb69d3p-79
    -0x1.2ae04f2ab2dffp-78
    -0x1.4ee100b7c4747p-83
    -0x1.cdc62e58900a3p-84
    -0x1.033e43d08fd14p-86
""")
"""What RGAMMA leaves of its first 18 coefficients."""

STIRLING = _table("""
    0x1.5555555555555p-4
    -0x1.6c16c16c005efp-9
    0x1.a01a00b2129c7p-11
    -0x1.3812925627a6fp-11
    0x1.b8de887ab6961p-11
    -0x1.e816004a67016p-10
    0x1.295464e1be693p-8
""")
"""(lgamma(y) - (y - 1/2) log(y) + y - log(2 pi) / 2) y in 1 / y**2, y from 6.5: within a factor of 1 + 2**-49."""
