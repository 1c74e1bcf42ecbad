"""Character sets as sorted ranges of code points that neither touch nor overlap, and the sets that Unicode defines.

Source: Go unicode, regexp/syntax (``unicodeTable``, ``cleanClass``).
"""

from __future__ import annotations

import base64
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final, TypeAlias

import msgspec

from deltaloop.schemas.work import charge

PACKED: Final = "c-rlK*|Oxwjph4%1%F`Lf;;)BPW4C{RhG&+OKR(WxyGH0V2}*%5nn$5+?@g3yqT4?t2AZO&EnzefCF#<4)<7#accU`vi*NM{oCn(O~q`zvrg7(IlZ-61stAN%eF$xwITox{I&3x;(_hL6}yCgJVY0`Yl8bitFk&c;pccZ$9sDC$62gg9oYr^Q^Ca<Ps4vRc)<qmcU%Bo1OLQu1>cVEQQvheA8?}2`|uS9j_`p1@J%-&q;t>b+~ZGuDbUwFdSd|ZInjR`_#!@^U<2TfKacNE^?8rpQ&3xSxDx5}uiI;$Gwt;Nd91x>c*3RjI`q6x)F}SCbnH+Yb2ti)du-wYp1s1ELVvr5znZ>v()R`QF4b0>o=f3e$L>#$_VH(Ydd@%SO^<Kbl|DcQ<Htsg&+v&sGY&r%5o1vZ6frTpE+q!Qza3myEc<kj8o=M6k5MuLeH>8}vFRX)Hh!Pj=&7R<2~UA9^3U{yN8e5w-FhRbcx(sy;Qq!%e2;xKcW&^{4%bFxa!FEeTg??IYKVUkG&TbHfAYnJW2YmA`Se$kIQ!}eJHk$Q024MijeVI@&q8BEq87vh<p4jJ;n@+JvB15+C3=l|r47&9a05yL{1-kOW7`IR6`mT@xA2ireY9A0^GQeXAl77?KP1*}G%ppgC+nisDA7teV*3lYjBlBU=?*Zmpg(tq(@g~(m*Im&PV9p&zu{8}>lnKw@ydyPk?!A5{kdm&3yK%85XgVPL&!CI##7i(XT$eXH=;;8If@E$<=Woxa~F6`Jb+~SXeIof6wk<8hbG7&zCx=)?41za?;}eSls3x=iFlU;hF(@u|I&v$uvx@={r4mXI>E)ZD^ZB9*s31eU06XgS_$6oJWzZi(ngPH3=W;we+_&sL;Gl-N%2<{6<_J!g#^{5hg`I@J_sLcj52GgK^b)!THsMX=~7?Y@P6pG3T{QVKsN!!weDF5v7K6O3j*k1(+i;2RgGR1*F87@YEj35FTUlKnq;M-^bhjgu7RJqmM>!xGl4<UqaKbsU}+5hBIE6l#1C{a)F#`GwM|4xLfhpat<+9MmIpoMfOL9VgIYM(s*y=uj<vEb#37g1pP<Uj$X<^mGeU+tbjw726Oi^rC=QN;ngU&r;XeU>ImBx|sWr9OBRh{bM%eHW8ZaU=W)Q<(y+yOpR^6V#kQFGtHDpFZYzf>r&<LAYXxKoi?SUCA#XPhNc25@7r;~3FKFWfs!N&|7_yuL7K_8)uTe@>rEKM!1MJ|xh*e&}Gt-wzdFgk+iCOcjOchGFQK$Y*22^uXYgG;d<ZDQSkRgbzk$-BMN4R%UK>ZU#j&t=Fn<U=r%(IK-@!o4VeyQZnMoF`!*4$h%62{qd%$#Iofp7gkiFO6E_GBVgkWt!1g;P4Hiky!&60+4Qxc#v3r4XuJkO>k+R;iE8Gxw%zER?tmWxxh^uF%|kbp#vP9kd9c{_*AnW$L5Q5hTAUqHiz`=O6{;m`V<PBcdOyiJLwPz<EDHOLuKTVLQcBxa-uN>22NmPPL{fw5Ro`ay4Oze7G(`A8FW{$V!P;Z9F1KcZS=zeig5hGKc|A5Z<Y(afx{W_*!W4t$2yS$n*o^yCSP}PMDCjs%0N44crHfgAi}%OXJ}+VGP`uZIx@x^-PGt|SP80!Y}wFj(Dq1K6m*uN6)sdr4k~v>#_-b8v;JYy;22+6BejlC`i;-F6G|NrZ{N@r#rr4AxE{*1r20K-O!T$i^&BI;SNFgEGuKSd`Rsiu(dk*9W>AAd2R%`%As-|!C39S98bEZx1zk}A7c?|@Q=*5>(DGty#8I#z@r8DxeFqoa*B(Wo#>iId16klz*(4wPBqgRAp|O>yhBUAz+8TP=iMO%sQ)_Ma0bb#TB|3*RxK!8{e*}l92&@wAJgCo%LxLOCRv8zdb%W)F=~=}Q*%3%6Tw2~t9^4AAd`1W;e93?;CLiTNM)fj3-4E=0kmc}>);~aF@1}ufTkz<BirbFEl;@%1*WM{qAMVs=JFD-%cL)QP<*Y{aFNj=D<U0rL?}5wjfy-|-a2fw4f);0?Hvb;1{NP{()OK2b@>oR~vCqUSF=_Sh@yb76yn>#)LnGDi@yb7Iyt1snl~@Hvj_di;v5H^*9;W;rru@8NO6V!o8gK-JfW<BX7-)-2Ne({#N5u``*F_Nw-}`8thm5XK>)}7@2I#q<$HuILzd{2&KywE*!l#GaUCB~|WDI1LO0sLZZ?4+yaCN7KT1r*tp^bM?*ueV5Xzv^~WSx}#1!cI=FpJ}0fILA7aBlQ;MdFJxs$BG%-Z*1RDjL}aklIAcMF6_yvpAwB^-RbKL78i?vp~SXqAKrM4ce7elE%11K}&{OiKI*Ssgar*rS(O5*1ovkKK?e%1+Yf&Y@|8C@AHoDS9*NSKKlOizEyv_BGFdr<7rRdJJdxDIUYTgk_oqKig56MS8BRPo{4kBWGi(pzb8IEx@lstfz3gL?H#=k=-UShUy!36*(If{0r5GdSL7P$hGG*teXK_1MEeX58FQC>T6>~~J;)@x5lTi&U-n5>OgI=3H!?Dw4T_ZsY+N<^#F36v1N}u;g)-`3d*foEJX(F{g2tkR&pJ7UXr5JLM^!|4fCFhrPH9aeHr`lLK!Lr5A^Az`5BOFz26#lCY9yG<6rCUC?|Ep6(DfY9E?rTm;VUR>&J|UoL2Wt1t%Y)qL+HwfA~J;ompo%TAlcLZ@wHgs$G~j`%?<}0Xp#c@6e>zfyWqu&>3|B=Rru@^uLFI~jY%=EQ!*8_sDUEZPkKijYPjprSnSgKd?lgKV=!z7O8z~P7TJquGBY)CB+%{p#2>aNr|>7Fm>;czlN$lAsR@B%8F*n0Dpn5tRe&<P6z|mFqhlb7144-IdP(Dbi~O$@Yj*6f2x%cW(r1id59l^&%|wM-PzFkxKORYVl%i(PbtzoFfpACo?wKf5DWX)_QqSt?Md;ODjkxEUvo`U{#8?A;FCkr^z)Jr;`9&lnBisPm6kStFV)$s{g9e;Hyx-Z;1r5+s(q0DkW2P1M#4H>{Rp6$gT?eXM>O>q7+?ehJ9|t;64Ivo{y~mnF!g(TVj;(I=8w(nGL5K@0S(Fo&;r~~-a<-I?*(mj>C=aq(zzZ*ji-_>gM!5rS=T@S}ZDT|whVG3}l+Y^+$#^-~e6(EPeEY`F2oKe9fm10---6~qHCcIe1A2M(S%v#ES#wwS|AenVLMEg)q`bz2tWr-l(4rchFh}_T81&IU4-BMLEQj&Sqz9W8UstQ}Yl6n)sH5QHs$sOi2xtd^L5r|xXDNnG@>C)rCFkR+#l=QhbKq{wIe?iBn0gk}?Ie@7`<Wr>OfU8*5Ul{Idsh5ZYvN>I59nlU=)#E-kb$LL;2YXjuuK6GhfXxQrlB64LjApthCN5+9;iW%b^?@BoMJ;&6mU|$+(jkEfa@8lgsnzRWoG^7SZ&iIH*F=c^%%Rx9^9=ynNc|8($^wuXsw_`-`>G!sE2#z5pD&E0k@_KAZS^v67`v61cMKZLxJv^2AT`SBWIs<rd1IbG-|~*n?&pkK?=rU_Z&F_anMGF=4f)He1Js{;U(GH1VnHG8tyb9=g}|#ns_ZS)N@d%9W5sA;i09v%jw0F9_vDVVq_W66Bz@LiISpEhyIrD_%FzAiNPceW?_Qys^_AFrsOAp&vjR<39Y<_ueCOP!aZyO3|tjS%1Rx(*L3Z6ga+<mot_~?D8dWlee(NX|Cwus!7h7WOyjp2=R7)g!8hLS9m+$9hBP22q{7UOKZ3VVL{<q>?t>RU2RJrHrShlWF^9S%c{Pr-Pr(I_sUwl+=OR7+WnOeb&P=d<<oX~f&0yRXyFUy6V5U6iq(vNtvY*s32$L`J1$=$a8~%V>suA{0r=Z&&sOM*p9e2c_%b^jH2)l~$c+xifx*+8Nu>h=U*|mD0n{K*qc1lA+IHkrD%1wTD7|FcDYC9?Az^av$`vT1Ubu}+0X`w9Ueg`d5g4iN;S_o|w5ruC?+CSf){UfjcxIdSf2A7@lboA(IsditP3|E+ollJ0Fr#eR-%>B{ypALa>*mr)}zd+2``5(7$Q^u-bt@KFXFz0jEZj<vpzv{81yiLAM`jgO;{DQo5e<iv8CH^pifj)|k5v28xQN_*VV6y(kY5nE?qJIe*)Fg9Avvl$}r?D+Q{#24MJiG_Wq?5+SluT9U!cH4yPp6Un!<$eKkf%V2Fn2SC!h5A;{-JpOG3WQ&{<FoLlyr#p)6e+n%MZ1O(<d)FzcMew&l+uCT>J9225f%$Q-3~-S6*M6^>F%0Z*{(c19uNF;&o^6QoZc8SDJ6iA-zL1TWy%(y*OuhXrvo3+QMU(IiZO@_qo3jn%0vljo<NK8Y`p=df%*Fd7xM8>`?;u)$GAd^DU>k7!1O3PSgq;?U-#WrSD+?>0!qFjwxRkg|ocTv@OoLyQl~?{*&#Pa9eRk3SE^4rUA|YPgrJ{+79qpKU0arlbUO%KE#?P2Sc@Xf8f_Je@E3+Zm3JAT+9Pf&XFd_@8rhV>OE+}T*}1Ql$xMY2A8O)+OwK-h3>l8JpXj=Zdjtz^OQi=)hq=NH#ZEYeT;H$*vu7pqL|xT-c3($g}$y^@KK^VHodZ{A~Z3>GJMzU%2j2bKAKALC`Ol4DK%AR{XUiQ^G&7rdLhzxOr`Wcd>X|KFbVck%$mTPzTa$#o++Uy;s?x@c>8xwl+4&DIXALUWS)EY(C`J*3}t5g51L(2<y}s#XCOZ_yHJH_B-a~FF<@$h=6lr?gT1O0B~VFv>}*E{;QLP}!2dm(5PD-Sq0}<}+4%%yOhN{_d}BVr!-}-eO(SeSZu$UBDG75#1&cq=^Z}+|eXOG~^9Ekd=LNj@SD6a%z5jnF0Q`T&+&}O}CI0)`r2M_@qbz^_eKPyOgmyi@W0&7wXVY(1>%5swx1-;35`DI^mSx#&DwJLd7F?R5M=V-V&nznO?kqGK2gEDqpCTRfW!HbIR4aFD96dmrWA8A^uRHX4|I;OUUDW^M>2rTTl=V~oMMnwV>7#-)y3VW9;*X|eY+VK(sX7l=FBSMcEeII5sdU-Se`9IS&!sor-+0!AMlL5xc(Ub!&LTu%p-F{C`|ruje^SZ(xo8MKN_u9m?!ohpt=FBXKabWpgr=g>JBG`*=SN+tu2rjYYzhe=sz8?_e>I2YFyp2CKIdOTRAQDg>+aXzR)+J}n!bA$M1RUQ`>$;Cm$%bn!Q7|*p7p;0bJXi_!#Vc*Gjo}Ll(`HkbD1qHb2*4C<mrv+^iW^3#Z3C7F`r4FK9SvAAr88K^atN43Z1unZ?zf5XAr#y7+2WQtALhP$0Vqj7Zsi?$9g{14)P9GbiOZmUq_iVjI&*x=Fz@bq?VM?S{6*}Y-)XsL*bfQdO%Br+GD2H)<u<S-N~q(5PgHE(`wF<`tm4FI&LuODu-gWj-sJAULR5BMCG_>4UEZ{(c%$ICfJuFpRBH^C2_Bs`}$&~m*!ysoVdZzLr*_QX8j{`PitjvIx|Maor>&86`(kJ-JHW$A*wWhTK9*^FdBu_G9gz}?dUQTOl757iCpW9DXkkG&3d8IssjAgteny7VlbVHEp=197%@OLL4Y1p2EbKwsEb+&3_(hzLf4#P&kT8#;|*ubJm4!Yq^F_oQ2(qdOEC48Q?iz#8I;}<Gc*t)LjT1(-5k>z9tW5Hgzd4y6tmQ-$i~UkIxU<Hs3{buNdIP5LfDy_U7}Q6PLUNYBSKnfd6#0AeN@`mfv&a<S{=HV9e(IyQhX!%PPD3(mY^i14lDz;aLrKzB4#tnJNEyi2%z3i)Pg=2pRqAnV(S_w>L6&9N>tf571!sqK$h08A#-gcAT}Y7O77?~j)HPIO#EJ}lM)CI3$tpK<Hr?Z!G&&(l$F7SCC)?DKNpyJFRWnEX$AL)C~WMoK)>)rD;jNI2h1^f6p2dGqzQ2_#22?}1#-zUeI}i5uX-*ORXgrUWo$E1uNv+72?<aE+{84Xjn-?{)1r;4U{*Wi0MmU`N%wkF0&v9zCqy{8G1%%A19hV6Ou0`VKNM4@0w+5>wZIGXB2a-o%N9AanzjMmt5iRMilJ>BX^kq9R6S~7k6P*eKBF~PCuLKVJgeTL74CMYS6{k%_JEe9(pi;4?dS=`E?hvU3ZB%U^nA)$we|M2@~39G8nw^9Js<Rrg<8ntS+Cip?*#l|O4xZi+lWRg4pn*$sGsyqR;VTScFeg1mdfF&Y$GN46WgrhyXvJwH1*SIc`^&pgP0R%R)C`~>S;kRW3XNleABP>^(bl&#~M$SC9rd~whr5?a%%2`%Qm{<WMbr6^+Rd74=RE)o1>Y5#&tE52eYn_tfMKHq8ZXFo8Q3;=dm~UU5rho_eDAvZTIRk4)s8xRzx^QV#6ENP-)hfxF0F9zo>aHrAH54vvurXaHSIpxPiX)Xtya@AR9}anCMprn^tt6xl`^#i>$9!N~;yHv|&z~X@zkfESKWn^*~KN@2D3L6IV?;$~i+>#?-oXj!)DeUujEWZK%6mPLn<1S$F6y?=45&(LLQ42r`Oa(0y5rU!bPOeC>&;k^Q7(*Vh)XJ=_=jxhKHe?#pq5cQF6yzUbGQgifrJJehG{ZhE054P>4%GtQyR+;w5^3iXZ+EtvpYW!`z)7sbYt<_CcD7rQ9Xg#1ub;i9Z;s>;|6pZr0W^uX1!iH6m<Do-~>yDDnfP)mf9PrEH<iw`wL5qQQ*bcgq5;)amSgm!6iHIs`&w2n-@BUJ)pTx6+D3S2EshdZd15s!3k-?%>6u{VfW<bAk5nHHk-EjNf3>MA$rL_^oxZqQBJAul446CO~a=UH=|)Fx^4lqcj{#<t};I92Aaddnj+`#uClfbh#dhgU>H>REb4j=rW#hKy&V#wM~vw4Y^76NJj_IsK7Pu(^kHqQu12NW7;O&uX`*qJDGq{vl-T{KMxaLOPNb1*r9fp5t-U<_t!nw0FN8>1p_Cq$Y6Cr+U_+dbTDE!LHmWpH3+^N>34{D$23almu759$hMz6&SqfT7eSVM@$^|+89uogNbNA?ONHBajQzdedSX5G-3HmyHj7Il*YIe-PXBgoDZfEYD8xNx57zlgsCpXaBYLsKQzmQsjG-~j0kXQI>xaG3zQoCVvH)NZwJvl<HBpbME`=*aXn6y2EERe;l>jY`Q*6cf_F73G+HZAnug)2S*6B&b^WZQ+OsYpd0#l0UE?&r?cfw&t0wd!n&6HvC=<9Ke<f>HC|SW({MQK^=OZZ*l?YL*UBipcv?9gxRe|rwZ#cH)Xr~)0!m(~@nZ%+Efs1=Q`S|E9Bs&u5eI-09<?yk;Y}&iSMR9<Bjnq;H+Wmy$>77;~gsSi>4vj=aA<lr8v~v`aL^}mxITkQ4#=$m5mB0yG;5s%YKAWCM@F{0i|3Fka;M62?yLCYqgY4KvVN|zVthvYD%;!S%1WMEuZNPcL@CRd57Yl8cg`AXmHt)#sZ6kUF)VM2c?sJqc_{u*htlNmn3C1H<0-7rcwZrifLiwft2q6Rs8qJYij;4=|-~rpZPYd2i&o=9KN`|dI*W<NoYhL~A7JAPoy5z}u>XKM*AaQg_F`q@l+A@BN;R`<H_Mu^CYk6m4x`WfhWKCC>sYX|#`qoQKd#lV`f`e=X0Z^|2XYtNW#*9WP!6FwoS5+DysA}&n@M_Qo%y*EC6}3Dk2P;{m_LgdhdRu$9_LB<Rg=m%P^OZJQT4-Yiu7tL2|71EB&u^;R*-9=L(osB_KHyC~n!XMzD2m<vgo1b>R>u#^r`3R1{S8$(nJqC=U3@m`admpuY$%_~(=m-_wg5ZpF3e~ZY@n7;$mvz2UzcU*_zC}~WJ86}xfM_~3wjcpig8q+?4mQ}l0QUS+^yPwP9o#uQey^6<?1bpXm=CGHTg&U4@HzU`Xe5#=1xqj9LhnW-{uvj-T<Skh}<+Bi``a_;oeN!=GeGrldBSuYTK?E`Vd{Q&L$;2YacQt2N;9(`l_}*vlev6ornqxL5XlTF&eVbQ*0xhXK=~U&|dONeUhr`)|fzT_G%do3$C~z4eM1M+<!);-(k1}g+Z~VEwpT3cPQ<?N1mgD88;Hr+H7QnC_taKawu+{$?n`K5yY$7z2FN(hEm3;@=a^<0V%fjg1(x6(S@}kZt+3|6(sHUirhv9x3j9W^^^zWC(6Ch5%yX6`#3wQW8Fip$Vi|Fq*t}^oNCQZ8y#XX#+_<RaS*_-QbGqKr;vgm;!LYHD$<oBIA}%G5cDPMyV?#k!%7;63tPM;rYhDmW&x<2*k1G&R2{mYu}2;m<|O>BC)GC_q<oX9J<WmyT|LS_g!4!V4Dwl2G08W%$|%~@WTjs-5<H>TVYe8rIOA2T+ot_fWMEdBoxsR<_F9S_%^VGt`nj$t;{B%3C6JZw9A{gM{#PZ1AvY7U;w`nw{-9Pa;pZl1V)B>Ym??_C&nlo<AE1cN&FibLUzP4(FfFD+tcLo)p=`<L+u$9QyC;+VVGPq2PjM66dy3mb^Bgt*X0wSfv#Zh31C4rN5Z1>$6ONtV`CPB9IG>ia57k7Kw0CX6OC6VeWVtDl`!%dKS-ejf>=wE0)^C|<Wq*E<sSfp`pO`YyCg@9^rDJvX+8iI-bh<h+bdHGE(>XVjZ_m_P+g+^)K3Np7{R~z*GP`|tIt}FNeQX@v$WR*W&q#-Di230b`&R#}8|z7DW6HxmuF^iPXOq@*|9K7NP1n!<09%PeNJHyoPCwXI8s>S-R(?<pW@xF>;7vckyiZRQ%9(Z0t9}<o4m4L79GSujvx~~wkqWycyCrRW%oa}gqgF+ng$p*FuXT}uiKBPe3>LLZDG4Ar<|G@Fnz5lB=}u}hg=Z?xw_47(8wC~qkzJ!r>@FB$Txio(d<~@yJqkQ<g9V&bTy$+exs%25XXDa-r9-x-&t7oUf7Tu7Stgyyd|iH#kumeEKpQNYxbQJN^l7dbG!Ju;xZ4BnF<q+&CL<>noKf0S^+vlPx>kZS=oHgzR)C9d;=9`O5giz(!WAPstq+Lx(wkf_NTR$PF<s40VZQW1YkxADphV5V#DR@`jaG=0X?uejj6B3a<)Ri{;Ad%2P+I|(Xf6WN?<J);p)V^dxnd-CQNx<6eP>hslzv9^+^b%7fNhU3iUo^qit96_>r|6rCn!!8$v{PGb_SezFV<4;;95DfH|ao2xNzs*SyAWG?u}G#j^o{|me^cTi796sV%oA#wc>8y@n3jx5u)XBQPV>0y5nF%L;Z=oIJ45vMbXVr7{jw#&H{|dX+47xH=8EzD@>bD$OF8IcJiR58Nj*`>kTTZF7r_3e6+!8YeMWo+M@7Gsk=~RGiH^F4{>XWoC+{Zak(Aqse)X81pnvJVBaV+k?BfT9B%GZCPPIW7--Qy=wFbwhP3M}`7|4)$!|HZ=r+>neKRZLsOtky4}?KVQ~C~hM)tNF<8(oiv<jVAojS6xXg+6o9<-LYwLhW9Zh{U^mv3B{N8gC=vckK1BZ;2c9X6aSPc`eRwxO-ntg*I~X6qB%(L&K8i3J6a!R58tAfsrT@;_Ysqqi-4x`C07DBNTF=&)2%8)q`Wy~=^-W)_$hp-{9D=QMe}(0a=de_(+dj?h<AezZM|Ps96l*L?EY*L1nP-hSK;%Ha!D!Mn_Q;Qr8KqW3uyf^QrHH6GY#7Ty{M3Y3+kP*z_V(N~r~*?xr4zqlXSd)tjZvfwn=`lbahS%Do{@I-Hh^PE}@%)U9t9y(!7?>m!Ca?v3}_v)r5pzKZ9ec#dZt2X6AX*5}BC<w`uc5!W)of>QI{D^@d&VRrd(3|W7%~7M}ud?ni^XSXx^)c~g|1bj{l5zWqjQAdW&Ne&IY>F-}&JVT50oM6k!e7oL|Bs4$FJw%K@#{q`P*YQ|v}rv$VCrs&&@z+N_#a?jHW)Cy{UTKeCg1XhyoK@H>Dvr_d!Htbl%oHk?t$lL4-J4zYk{xoe3#69+a%q~pPORrtM)$B;C4(W93<2oW0E!*ZbnP4rms84p&T4WcbO98huUO>1V0#5iJ+>rrj>T->eI4QbRJ#319+{r5ktxJ%^E}3u23_nEHJX?e}ctPn4H#}xE39-3WROfDQ>m#u$|SL9((?<7SoKkR5!f_TXFH<leX!K2^bHa24%VJL|?crS8Llg3UnO^{mV&Tn5N|A9|?T@(Vs{XeSKk0E|y<ss4HN8)XAc&;1eVpt}dJTc%`>XLA`y<%ldlm(zSZ^mO5!J({h3LT-=K?acc9*)Y7f$hyL1^y>-FlLhRCx2+(_KFROnalllq|*S82QrLW2*%%!Gn3oG0zFp%ohQfZz*3`#3b_365S0TN_b|I$m+B{@pyAJTqo;1Ns<+#{<Vt+G}7er|B6?;WXwN*9Yc^{FLGCVIY26V-oZo2gyT^>0$v$>j<fRqvVFNv$@guhxFq(4;1${FKVj*Fak?1(+aUxZcZc-arRJeYqc#=}I4~q4!3;>GSp4cWOF%q|F&@Q*7<gME$0{PP2d8S#9N-uze}&n+B#%hN2@JGKySTN!z-k_nP94t`SA1L1dCdzFDGvH#;swM<t8$`P)Wq?5?)S_H;FPqoXMM7}1qhR;o77x0-@R$g4Gs=)lzFbIgOW5bHaYnKfnVxKuM#RRQJ~HXKahcpm*E!-IYshjv7dbh@X;nL#tofww>#8aZm7I+)E46zNI(h?T#}M17<75>TQ0s`;O&62U~Jzye*(4Njl(P-xc)+Dn2217MJ&PjKp~wxORt9_$8qqM`z^W3cn@diE(twkBBHJpJT5(M7JZM;>O#R+`W1t#kM3;WEW!APkp-PGkOR0gT%9y;`p)@xw~}FvGAj;)?3%R3oDUZA;%RUD1?1T(U3Q3D*E)J(e=qndNIsa3977I>@g4?CmAvr{li<<$crjsH@!_;(?pKFoMB?CQKDN*)C1Fv^ZNy@rFvfMLo2*gTTb;tQubcGSc}d1$X`aKZ1c9;lFm7ZN@tMu~@;TRbZ=dq(u?;sdolzt#f$cwHfrR@gEx)PhS3TSw=9l=O#LKfio+yXDvV}$d!JiuSSsPa|#wvvGR}0(Drv|ol_3k>s8Cfp#4X62Zq1)19}j^WmY$U^_<9fUNDQN&)u&HItMkpSUD8`G1pB$z&ZCqLE(?wuEM2XS{Y!72)|$lh<;e#*cQRQU0$udrk4Jx=*J2zw3|e4Y*3E%La|v&=!Px3MLpgo6?jf4q*1@2064{4g+c1(9@v6oPUu-my#6#M-CRRQHR;<Uwi%hDqiXh9?`SI4^~=YixLCb$-A%UL|7cgIvkDxsOxU~AFW8hcwcx3G*l4FZtS{Saw9r4prK+b~{o5B2I&@=7voQCwT5*r%hCcodg=*|_PR3*gYwQe`!|GID(;XjcU|hXxgG)a_6X@4;=cG+u{?vCldMkN$Y#CrbHyDewPW)*Zugj%|8y~)&p#9XwHtriMbRx~s$g1dde+Hq6!5`)UoShv><cMk;Zu4_{5tl|Rvkgb*#cJnNFfHW|T6Yf(s21oeFe&hE|Bi+y3~-pGeZ)a;7OSfZ@Vo0xZU++1`^Q^%n0Gd1^YWj4-E`F*y&+HUh7z0WOV@)9yj0djpP5H;b<>O9awE_Z`R5`X3w)Zw(U|sgz|WUC@$B`+Bl-i)2sW_;J9d8V4)5L)E4))yo_^zEG<Nkb*P#GkuYG~|MA@JUbPM}4QrCh0v6;as(pA>zuVyW6s|9f+%^8&#Y81(5i(89U{cy}?xu?XGvfAF|O2wkNHF~C4)Q!lOuyMoePm~tc9(1KH0Q^fgWn%+2w+Dyz<(s5#lNEngY0fPCp|tSLn?^7r#BvyvP*>Gm|2Kj01Rd$U&eX5JJOjVKCe4h3U(XZDMXK5N*Q5il8c44;z0nWf9LYVjQk7kYNBur&rG5j1A=F(kC^~vGEZk=wd@fbT3~rd0x@OCm`@D)hvq7CsX5mt)2cf?v8!B_ZsULB}Flp2m?n(XfRb%b>q?`#&MxBiPR1<~O`Jyd+a4evkw0DcMnUQ{?f%xp@!!>E!mk-2T7^Zs4MP!qeYp&JTVg!fNBb_q4CZ2Ve^VhmRV~o^zl}g4X`t*_~TY~nei8Hn3u@ddC5^yV4|IO{8uE#HIIC{S+GbDcnX0m(rvoDqW$(Kqo$w$AQx+&9R19_J__Ba@bBw^dDxp!SjJgHyiz~2kPpE2tr`avG=<DX6d<1wf)QT=8|IXrL{IW+BR?_#t5pjp%&<BEu4$Y7ZB&$Nvb){S{ufWB(3DVU;tB2vsR1yU8czTOqd`0@uV6ZF^~K>Xsr;}7OkpV@av-#jhWhHgs=WY%UQl6$6tLGZsOeI{4hm1ndqmb&kKQYU9Hj-W#ih*k9J4UqjQ8BthII(U8$<Iz2#1k9y6l*%^K@;+@T1x}v6xy#9FU3&_B&8NBsxK&UiKnrLpKh>AUtS;dECFseP&?+>230jg|kFhZ6pJQ6c>Zqf`mcK9ZqD-261o?7KAVp52&lhviyu45D;85(q^($^^N7l?d*yY8`Uz<yES%BF+3{XA}&85CN_UI73yj#WzJXav1+NkD_Cc0yJlW;Vv>ZFzHeS^w!f|Cw~V3%XqeczL6Z5!reGt;8Jt0;kGd6;q0<2R<->1SQA?ym3xUDEe{gj*gLHI_VW<ol(ase_y7^wFkEO1IyG|9pl1cEOYJN^7BlMCYd4{B@FoHB{XeZ5F1jBYmNIdA~qcgRAd!Fr?eQJ`Y`GLVz>KK&YxAUH!SQi|ysxq<Q&jDJ<VUc2o-~B)82i=sh+)2F}LM{QA;kmJe-@8P~sFrg}jWhxx+n4zGBq^Y<pX6kYZ5&5~sGQoQ{63ao@yo+=gh=3*TATZP#W54uU|%HP_TcXb0+(8pX#s?X&we_pyuCt+%AxZa9A(&hkf`OBQN<O~BZF+t=USHA9HfP0~gBk>aK?|NMPrWmjEScEAJetJ@R3~oFY?BvI#4}GN+x<;0`?EE4=bB)+%zFo!(xf5WRoYQgo@As-+K;LV)S*h^f#s=IZCy4bHZr|m;N5>jLJg-trf18pDe}J!^)c*GR<TdHg11qbFVrnJn;36bjt-Hy7K*U8m@5TCqw4If{vAy2MqC@?Qj9Pt@EHCdG2=5Y%Bo`19<-~ncC)EU=g|$cU*0Vm>7hs4KbHF-`&vL3MY3E{O?#dF;{*P#HRiFH40mibj_7b;DGa0u3T;P2mJsT>ur-l3jIBsJ@+0u*tZJ$D4SjGfKb%<m4ME^*nlCTdj-lN-MH>b^H3gFzT1OPs%CGkU(=P0jsgDdoEifHtOs{1eaXoI5O0?Ca_DGn19erUQHY&e)UTQBf`z2~F%YT0{e*1?upt}~WTxr2c~Yy5|POhE9!YsKEHw-fE#8S88J{+goZqSLRLgH}UjN6QP2$)T@@z7O}dpPLsjEnqzM0DnkMp9i%AYQaOw)#@z@D_hO&Z^7EM5F~owCbdUe7S5(gx8Zt^=s9NTOJINC^Cy*j_KuU^B4;V2yJ;6IF`IoI_xz)QgB?Bx9>{P!dm(dos??A4#ro{E0i}r-9kYGcuAe^J=fFL3p}?Z1rUhcfL0MN#ASsVl|4eXvoL<P~J5j<_ZTZ%wn5I;G{I+P93M^)x3D3Cv$SZb^Y8mAj8y6G!gMP7%8T#Cu0sB9;>gRuzOZ#n;7AX799mgbETIl0|j|XN04r6@3g~$v>3s5x7P@i>@PSe?p^)jPMKo8O?1x;u_!_d${Y_<^oJDTO03}~ED-bg+F4`|v3Jc^X&`~$*;%W}hCYV5qv|JDZG|6fU$)%YQZMTxqTJ`JH^1r}$<9xqX>abA<I{de(ba3rr$uubM!z3smnYi%cM!~B$)M+07_$pf6d54R;5!Kj_l^gaF;3?j*7y-TJd2RWU=ELmT@GiTd=Dqv*mvUy1`da}ML%q38@rUU&4HwV=1{c*bMifryj`Be72Jdb^Ay*o}UBbeCi{_^1ts@qy0%!NOK<&y8n&6Of+AnbVgdby_1*ssm`|L8Jk?z2UvrT?d)ppU<*G?)7En&6M#Yy6iE82$R@Mqf0{5%6e5Yfghl{qmt0Fgw$a*8d#m`>hx=;PSy_b4Bp)eF8(O;l<UQ1dpu*H}81#qYLJVi@xx6-%Uf3J(<y&3%a=){tfJ?q;@h_W(fSPcN`s`@5Nd3N_keiR9-TTHD@6n2P2#eHRs!4E{@Hb%*D&!!Gym%p5QOn=h(C63~)g7#l$W=Sz{#b1BhZ@!MCh;$BnwB8h+c%Z6W$_)>r=CCDR0BVv$?#46FY>46k~8(N{810;U6bQ#JEbjt3+T$SV6bxBfQ<uG?|Eu;Y~-Z|rzy$9H!8cpf_^c5Jg_haF>PIjGhHd+eIejstcavg3#y$Lu&^$0?TkR0qu1rJNlX?6_pd6+5okaq~R(ZR^r8$Ufn-Px$N;KKq2vKH=BMk-RxD|IC>kU)XWWj<4*Px2b2x13SL4<B=Ut?3hW1&!od=(&01d@R@Y@OgaK45do8kfJsE)vSTI<0h5M+Nkah9)_OK5gwZ`e0ES=YIAF&SJ5Jbf#*PbiT(RSZ9bee-l^yr&_{NSWcD%6TjUC^g#~3>u#|}GYbVZD=h|v`>x*|qb#OR6`EfJ$7Vzfj9J098b%#K%fytCuS^EkHIvCEEG`(xJrn6*D<?T=aeW7aP*qa|jv#Eh1h^-Ik9C1(8+vwn$Lzr?Ix64oyX>z9P}OTy?%7+ndYD`9jcj4muAIgZclxMjyZPM#VtfLb1aQI;^uAeQuR2Vh;6>|hWMaOZ$^V2Z!(b^sUb%mHxO_5pnMNXXumMqpkJfD4Tekbnjs0D^}30E|It0nyL_D*i|f2Il~c<vv?>2J>?OCKV}@ij+x3dIMW@04DC~%r7vxNbmdt<5z~uc@E%kz{Ede?8-tgeg|MOlQA}AB_;z5puNWr)CqJGh^cGF`aWaonz7dB?Ae^PH)rj|%?6KSCe}G?ZqCFyXX=_Wb<J7F<g8<I)-gE~>U`#u<*YLbrkDj&%z`Oq!4$J#OfDD&1*4!~6cmhtf>BT~3JOL+!6+yg1qD;ff*G8G)4~i+$>=H>T_vNXWVDowmXgs@GFnPTOUY;{87(EFrCcEDJan#PGF0B-%5<Oyj5mj6s!js2eycp3Wj4UaAkhFuRmG^P7*!Rcs$x`C6}06r6BvZ2hvQc@fDXT^0{^Ca-U%K{ceJwx-{g8cSA%!bMF$E53Sp#uJ_p`t=N~ACYwdvsD~b;qYw)7F!<^ROHD8aGHQ>#)2WuMe=i0-#cQN^|;0ea&RL?rHXC2wI&V#t*X%+j4gPDWXau3o5T%C9T50i2R_#6ZrKzALIFhGAD7Jo=NU_SAHt1b`v2IdtH%qt#hDr!3*bBYJ%6c4z9Xs`}84_AEb;OxNs;eq+U1M`6g<^vB{&U<iYnDJ%V0auGD!NA<#fw{i}xWCpRAOj1JZp<0J;aYlsItIQQbBJ%uAs$`p=%10Pz{pf!Wb!aFc^H{uk4!d3W~4@Dq()|>MrNc&W~4@Dq$bBY1bSja!^G5fsvu%JK+QqJ!I^^#2Q3Fz4mu8c4h9Zx9E==H9LyXn9IPC$UY}U6PuT0;bcprD`hBKM=CiM776{F(-)GkEGYf=f76{EO5Sm$7JhQNPW?}K1(6<i<VoupL7PQVe-FGO?TqykP$(bqY%oKHI5%SEmbY@yQv(R;Bq3e95uN)dSGj*L=_&PJyotf&+Om$Z_<gYkI?v4F{*`TsA>0FsctxTg<rco>7!OAphWg4|Ijar#TtxTg<rco=?sFi8d#)kckwR2<b+*ms|*3ON!b7Sq?SUWe?&W*KmW9{5nJ2%$OjkR-U?cAArva>$e*`U5N{_l*gozb;3x^_m_&gj}1T|1*|XLRk1u6=r1;+;9fJG0|EbBK555Z{^Wa%T?lojJsJM%SIub!T+l8C`cq*PYRIXLQ{eU3W&;ozZn?{dH&kb!Yu`XZ`hH{q<n|^<e$=VEy%AbUhed4@TF6(e+?-Js4dNM%RPU^<Z>87+nuW*MrgZV01kgUH0k3fy05vLBK)8LBc`CLBT=ALBqj?gDVF;2R9BT4i*k}=5N@iyFd?)@Ye_#vITMkas~1P@&yV63I&P;iUmppN(IUU$^|L}Dg~+pss(BUItz3Ws1@icP$y6?&>+xFpi!Vnpjn_rpjDtvAkptO?{}<!_S@+RV+j)pQwcK(a|sIxO9?9pYY7_(&k|lFY$d!(*h$z+I7oPtaFlS8aF%e9aFuYAaF_5d;X}amB%v*#BcUsyC!sH4AYmw>l#Nu%Mk<9Nl|7h(o1I>su$AyCVJBfP;UM8n!coFW!db#a!d1de!d=3<gbx96X&;BSgpP!+gr0=Hgn@*igpq`?go%Wygqei7goT8qgq4J~gpGt}38idgQZ_Ov8<~`iOv*+kWh0Zak;&fAWbbFP_rd+19}Kn<UM1`#>?Ir|yh%7pI7v85xJbB4xJkH6c$e@YAcO+~+7dbvx)OR4`Vs~bh7v{+#u6qHrV?fn<`NbXmJ(JH))F=no+XsBu}Rt3q-<<bHa006o0N@B%El&TW0SJ6N!i$>Y;00CHYppMl#NZw#wKNBm$I=-+1RCQ>{2#%DI2?#ja|ydE@fkvvaw6q*rjajQZ{xe8@rT^UCPETWn-7Ju}j(5rEKg{Hg+i+yOfPx%Em5bW0$hAOWD|^Z0u4tApDG;VCG=qVC7)rV1EMtx>+NiboS@g8sq8-!O-sa=d68TjR~8eXR(dXV{M-Y+dhxBeI9Q6Jl^(s!0q#h+utV+77jKJSQO{qPaHTLcpL;AL>wd>a7uaf?ep;4=kd4C18|>5;64w*eIA4RJP7xB6z=md+~;w)&jWFvN8&yY#eE)&`#c!;c{J|xaNOtdxX%M}pGV|A56OKVllwd<_jy$A^RV3Kak<X}bDu}%!HHI4U7y(D7d;LF4k8W`4l)i34k`{B4lW#AIp{gKaWHYPaIkT}iM3B0a7t}Xsm&?1Ii)tI)aI1hoKl-pYV(HLyrDL4sLdPd@P<0Pp$>1T!yD@GhB~~V4sWQ#8|v_eI=o99-X#w25{Gw*!@I=clscSJhg0fsN?lH=%PDm^r7ow`<&?UdQkPTea!OrJsmm#KIi)VA)a8`AoKlxl>T*h5PN~Z&^*E&-r_|$=dYn>^Q|fU_Jx-~|DfO!7U=(;Y2Mq^j4lW$D99%i*IM_JYIk<E1V8B0dU~`ahkaJLQP;$U2^*N<Jr_|?^`V$8;2MY%)2b@x$Q|fa{eNJf*aS(HmaFBAqc@S_O1Oo>n2b_d}w>tDV@Hq%L2sz-b4tc9X-s+III)oV1d7@Szh(L=c>ICWq8U%vqb9$mtpviJCPc#d(Sg!X(t3aFOHczy36mhwXxLigK2QCMkzY*te#Q7U>{zhD4BQCKKm)M9)Y{Ydl;<_1e-Hf<yMqFYeF0m1p*oaGP%y|%V9>kmnG3P<dB{t>~8<$r61S<mxm$8J)SkiOAMLwCIQ`kWovbS9v>nR#-W>rs+b5L+la!_$lbI@>b=HS9X%fXd{j)R_qfrA?dBLmlz)t^Ey+@8SYz~jK@AmAY6AmSkAAmJe8AmbqCpx~h7pyHtBpyA-m!G(jCgDVFe2R#P^2R9DJC%_Fyp85Nz-vzo0#OHLP;UthPkRy;QkSCBYP#{n!P$W<+P$Ez&P$p0=P$5t$P$f_;P$SS;po>7QKv#h}fqH=kfo=kg0!;$V0xbfq0*QVfM86NB-v`m}H_`7m(eF3W?>Eu!H_`7m(eF3W?>Eu!yf7#ld5!nTi@Zl(<vsCo^vUO-;(%9}Py9O*uQ8u`4sIMw94s7c9Pq07nU~GayrDBMoS%8+{LD+|XI?u$^WyoLSI^I!(wS2_b4q7U>C7peIi)kFbmo-KoYI+7x^PMtPU*raT{xu+r*z?zE}YVZQ@U_U7f$KIDP1_F3#WA9lrEgog;Tn4N*7M)$|+qrrM%E5S~;a_$wAElFM{C=**HTs&XA2WWaA9kI1jc(yqXu-a2{-nD6!!+Hk=0==fTE#uyG!2oCh1{!NyCSHeTzr@nWZqS37OI+-VavNE`p?#y`68k8b><qHsx6E{W15QM)9HmqhiFC|?rwOT2(-=V_mvr+s#w_St#bXFrJ-OdKp6@WLma>DhUvXXlxooo9M>p6S_nrf27wo}FiUcAn|kZBCrciL*IzHYd*J#PL+o&QnD@PZjMvRkS;z#*0(RQ$;&Z741A#wDVNa&QnD@PZjMvRkZU|(auvvJ5Lqu4zJmASkczbGd(-c^z1y-v-3>P&NDr`TXMi#z*9K8%Uz3|=WuqO!`XQbXXiPbo#$|Np2OKaQBlWf;5nR~=WurKYz@;B@pgN>-5!?_k2l-n&GvY+J>G1OH`{kP@Hyc9?ekvsdE0`V6+aaPD_jMX2$Twx36u*|2viDG2~-Qz2y_<cB2X*PRiI9wUZ6psn?R#LlR&dTi$JSDn?SojeAO=QcWHYJ?h@W5d<dAIB(x=TBy=V8B=jW=Bn%~tB#b3YBupjDB+Ml&BrGMYB&;QDBs@!ak+7BUDq$yKFX15JO~O&aNy1seMZ#4=DI2+zja<q`E@h*Z->v0$Yx&(;ez%t2t>t%X`Q2K6w~;d0NSSP;Og2&`8!3~Gl*vZQWFuv=kuupxnQWv?Hc}=VDU*$q$wta#BW1FYGTBI(Y@|#!QYITIlZ}+gM#^L(WwMbn*+`jeq)awaCOg{a=?Q%a0|`S3BMD;(6A4oZGYNAE3kfR;YY7_(&k|lFY$d!(*h$z+I7oPtaFlS8aF%e9aFcMC@Gjv)!2TqmEukZ!?CxH4H*G&QF_=qONLWf(NmxtRNO+d;B4I1xRl-ifUcy1bn}nl;lZ3N`i-fC$n}oZBcL^T?q94zpEukZ!E1@T$FJT~IC}AXFEMX#HDxs7ON6LmHWy6uO;YitVq-;1+HXJD%j+6~Y%7!Cl!;!M#NZD|tY&b$TaLc8Qp;n-)K%GFnK!ZRxfkuHQfo6dgfmVSwfp&rJ0zEjYP6F8iIRd!?c>?(Y1p<WvMFPbFB?6@aWdh{_6$0@MVsKMVj%tA#fzAS51ZoAk3e*YI3p5CH6KE7@5@;4^5oi@?6KEIcE|A#&CqD^f3*-po3gijo3ls<x3KR(x3zP`N`kj7)=gv?rP$5t$P$f_;P$SS;po>7QKv#h}fqH=kfo=kg0!;$V0xbfq0&N2A0^J3AaCAKhWDDd7<O<{o<O>uC6bcjx6a)Hyx#qY_"  # noqa: E501 - base 85 of zlib


RuneSet: TypeAlias = tuple[tuple[int, int], ...]

LAST: Final = 0x10FFFF
ANY: Final[RuneSet] = ((0, LAST),)
ASCII: Final[RuneSet] = ((0, 0x7F),)
NEWLINE: Final = 0x0A
DIGIT: Final[RuneSet] = ((0x30, 0x39),)
SPACE: Final[RuneSet] = ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20))
WORD: Final[RuneSet] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
POSIX: Final[dict[str, RuneSet]] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ASCII,
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
_BASE: Final = 36
# Letters that equal ASCII letters when case is ignored: KELVIN SIGN and LATIN SMALL LETTER LONG S.
_BEYOND_ASCII: Final = {"k": 0x212A, "s": 0x017F}


def joined(ranges: Iterable[tuple[int, int]]) -> RuneSet:
    result: list[tuple[int, int]] = []
    known = sorted(ranges)
    charge(10 * len(known))
    for low, high in known:
        if result and low <= result[-1][1] + 1:
            result[-1] = result[-1][0], max(high, result[-1][1])
        else:
            result.append((low, high))
    return tuple(result)


@lru_cache(maxsize=64)
def negated(runes: RuneSet) -> RuneSet:
    charge(4 * len(runes))
    result: list[tuple[int, int]] = []
    start = 0
    for low, high in runes:
        if start < low:
            result.append((start, low - 1))
        start = high + 1
    if start <= LAST:
        result.append((start, LAST))
    return tuple(result)


@lru_cache(maxsize=64)
def folded(runes: RuneSet) -> RuneSet:
    """Return a set with all case variants of its letters."""
    return joined([*runes, *((other, other) for other in _others(runes))])


def _others(runes: RuneSet) -> Iterable[int]:
    if runes and runes[-1][1] <= ASCII[0][1]:  # true for most sets, and the tables are not needed
        for low, high in runes:
            for rune in range(low, high + 1):
                yield from _ascii_others(rune)
        return
    orbits, known = _tables().orbits, _letters()
    for low, high in runes:
        letters = known[bisect_left(known, low) : bisect_right(known, high)]
        charge(10 * (1 + len(letters)))
        for rune in letters:
            yield from (other for other in orbits[rune] if not low <= other <= high)


@cache
def _letters() -> list[int]:
    return sorted(_tables().orbits)


def _ascii_others(rune: int) -> tuple[int, ...]:
    sign = chr(rune)
    if not sign.isalpha():
        return ()
    other = ord(sign.swapcase())
    beyond = _BEYOND_ASCII.get(sign.lower())
    return (other,) if beyond is None else (other, beyond)


def named(name: str) -> RuneSet | None:
    """Return the set of a Unicode category or script, ignoring case and separators of the name, or None."""
    name = canonical(name)
    if name in ("Any", "Ascii"):
        return ANY if name == "Any" else ASCII
    tables = _tables()
    if name == "Assigned":
        return negated(_set("Cn"))
    name = "LC" if name == "Lc" else name
    if name not in tables.packed and name not in tables.aliases:
        return None
    return _set(tables.aliases.get(name, name))


def canonical(name: str) -> str:
    """Return a name in the form of the tables: the first letter in upper case, the others in lower case."""
    kept = [sign for sign in name if sign not in "_- "]
    return "".join(sign.upper() if place == 0 else _lower(sign) for place, sign in enumerate(kept))


def _lower(sign: str) -> str:
    return sign.lower() if sign.isascii() else sign


class _Tables(msgspec.Struct, frozen=True):
    """Tables of Unicode: packed sets by name, aliases, and the case variants of each letter."""

    packed: dict[str, str]
    aliases: dict[str, str]
    orbits: dict[int, tuple[int, ...]]


@cache
def _tables() -> _Tables:
    tables = _Tables({}, {}, {})
    for line in zlib.decompress(base64.b85decode(PACKED)).decode().splitlines():
        kind, _, rest = line.partition(" ")
        name, _, numbers = rest.partition(" ")
        if kind == "set":
            tables.packed[name] = numbers
        elif kind == "alias":
            tables.aliases[canonical(name)] = numbers
        elif kind == "fold":
            orbit: list[int] = []
            for number in numbers.split():
                orbit.append(int(number, _BASE) + (orbit[-1] if orbit else 0))
            tables.orbits.update({rune: tuple(orbit) for rune in orbit})
    return tables


@cache
def _set(name: str) -> RuneSet:
    result: list[tuple[int, int]] = []
    end = 0
    numbers = iter(int(number, _BASE) for number in _tables().packed[name].split())
    for distance, length in zip(numbers, numbers, strict=True):
        end += distance + length
        result.append((end - length, end))
    return tuple(result)
